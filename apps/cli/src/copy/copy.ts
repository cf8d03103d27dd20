import { SandwireError } from '@sandwire/protocol'
import type { CommandContext } from '../commands/command.ts'
import { download } from './download.ts'
import { CopyReport } from './progress.ts'
import { retryTransfer, type Transfer } from './transfer.ts'
import { throwLocalError, type Location } from './location.ts'
import { RemoteWorkspace } from './remote-workspace.ts'
import { send } from './upload.ts'
import { Interrupted } from '../errors/errors.ts'
import type { Api } from '../server/api.ts'
import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'

/** Something was left out. */
const EXIT_INCOMPLETE = 1

export interface CopyRequest {
  readonly from: Location
  readonly to: Location
  readonly sandbox: string
  readonly isQuiet: boolean
}

function goesOn(path: string): string {
  return `stopped; what arrived of "${printable(path)}" is kept there for a day, and the same command goes on with it`
}

/** Does what `cp` was asked for; returns the exit code. */
export async function copy(request: CopyRequest, context: CommandContext): Promise<number> {
  const { io, api, isJson } = context
  using interruption = io.openInterruption()
  const { signal } = interruption
  const { from, to, sandbox, isQuiet } = request
  const canvas = isQuiet || (to.is === 'stream' && io.columns !== undefined) ? undefined : io.progress
  using report = new CopyReport(canvas, () => performance.now())
  const transfer: Transfer = { remote: new RemoteWorkspace(api, sandbox, signal), report, signal }
  try {
    const target = to.is === 'sandbox' ? to.path : from.is === 'sandbox' ? from.path : '.'
    await ensureRunning(transfer, target, {
      api,
      sandbox,
      say: (line) => (isQuiet ? undefined : io.say(line)),
    })
    if (from.is === 'sandbox' && to.is !== 'sandbox')
      await download(transfer, from, to).catch((error: unknown) => throwLocalError(error, to, 'to'))
    else if (to.is === 'sandbox' && from.is !== 'sandbox')
      await send(transfer, from, to).catch((error: unknown) => throwLocalError(error, from, 'from'))
  } catch (error) {
    report[Symbol.dispose]()
    if (report.kept !== undefined && !isQuiet) io.say(goesOn(report.kept))
    if (signal.aborted) throw new Interrupted(String(signal.reason))
    throw error
  } finally {
    report[Symbol.dispose]()
  }
  for (const line of report.leftOut.lines) io.say(line)
  // What goes to standard output is the file alone.
  if (isJson && to.is !== 'stream') io.print(formatJson(report.sum))
  return report.leftOut.count === 0 ? 0 : EXIT_INCOMPLETE
}

/** Asks for a path of the sandbox once, and starts the sandbox when it does not run. */
export async function ensureRunning(
  transfer: Transfer,
  path: string,
  {
    api,
    sandbox,
    say,
  }: { readonly api: Api; readonly sandbox: string; readonly say: (line: string) => void },
): Promise<void> {
  try {
    await retryTransfer(
      transfer,
      () => transfer.remote.stat(path),
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
