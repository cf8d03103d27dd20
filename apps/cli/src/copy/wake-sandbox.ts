import { SandwireError } from '@sandwire/protocol'
import type { Api } from '../server/api.ts'
import { insist, type Journey } from './journey.ts'

/** Asks for a path of the sandbox once, and starts the sandbox when it does not run. */
export async function wakeSandbox(
  journey: Journey,
  path: string,
  {
    api,
    sandbox,
    say,
  }: { readonly api: Api; readonly sandbox: string; readonly say: (line: string) => void },
): Promise<void> {
  try {
    await insist(
      journey,
      () => journey.remote.stat(path),
      () => 0,
    )
  } catch (caught) {
    const { code } = SandwireError.from(caught)
    // What is not there is found out again by whoever needs it.
    if (code === 'file_not_found') return
    if (code !== 'sandbox_stopped') throw caught
    say(`starting ${sandbox}`)
    await api.request('POST', `/api/sandboxes/${sandbox}/start`)
  }
}
