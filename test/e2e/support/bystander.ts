import { connectPlain, eventually } from '@sandwire/testing'
import type { RunningSandboxd } from './sandboxd.ts'

/** A session that has nothing to do with a test and must not notice it. */
export interface Bystander extends AsyncDisposable {
  /** Sends a line through the process and back; rejects when that takes too long. */
  readonly check: () => Promise<void>
}

/** Opens a well-behaved session on the same server. */
export async function openBystander(sandboxd: RunningSandboxd): Promise<Bystander> {
  const client = await connectPlain(sandboxd.socketUrl('/attach?cmd=cat'), { headers: sandboxd.headers })
  let sent = ''
  return {
    check: async () => {
      const line = `line ${sent.length}\n`
      sent += line
      await client.sendInput(line)
      await eventually(() => client.stdout.length === sent.length, { what: 'the bystander to get its echo' })
      if (client.stdout.text !== sent) throw new Error(`Bystander got "${client.stdout.text}"`)
    },
    [Symbol.asyncDispose]: async () => void (await client.close()),
  }
}
