import { SandwireError } from '@sandwire/protocol'
import type { CommandContext } from '../commands/command.ts'
import { download } from './download.ts'
import { CopyReport } from './progress.ts'
import { retryTransfer, type Transfer } from './transfer.ts'
import { throwLocalError, type Location } from './location.ts'
import { RemoteWorkspace } from './remote-workspace.ts'
import { upload } from './upload.ts'
import { InterruptedError } from '../errors/errors.ts'
import type { Api } from '../server/api.ts'
import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'

/** Something was skipped, or changed during the copy. */
const EXIT_INCOMPLETE = 1

export interface CopyRequest {
  readonly from: Location
  readonly to: Location
  readonly sandbox: string
  readonly isQuiet: boolean
}

function resumeNotice(path: string): string {
  return `interrupted; run the same command within a day to resume "${printable(path)}"`
}

/** Runs `cp`; returns the exit code. */
export async function copy(request: CopyRequest, context: CommandContext): Promise<number> {
  const { io, api, isJson } = context
  using interruption = io.openInterruption()
  const { signal } = interruption
  const { from, to, sandbox, isQuiet } = request
  const terminal = isQuiet || (to.kind === 'stream' && io.columns !== undefined) ? undefined : io.progress
  using report = new CopyReport(terminal, () => performance.now())
  const transfer: Transfer = { remote: new RemoteWorkspace(api, sandbox, signal), report, signal }
  try {
    const target = to.kind === 'sandbox' ? to.path : from.kind === 'sandbox' ? from.path : '.'
    await ensureRunning(transfer, target, {
      api,
      sandbox,
      info: (message) => (isQuiet ? undefined : io.info(message)),
    })
    if (from.kind === 'sandbox' && to.kind !== 'sandbox')
      await download(transfer, from, to).catch((error: unknown) => throwLocalError(error, to, 'to'))
    else if (to.kind === 'sandbox' && from.kind !== 'sandbox')
      await upload(transfer, from, to).catch((error: unknown) => throwLocalError(error, from, 'from'))
  } catch (error) {
    report[Symbol.dispose]()
    if (report.resumable !== undefined && !isQuiet) io.info(resumeNotice(report.resumable))
    if (signal.aborted) throw new InterruptedError(String(signal.reason))
    throw error
  } finally {
    report[Symbol.dispose]()
  }
  for (const line of report.problems.lines) io.info(line)
  // With stdout as the target, nothing else is printed there.
  if (isJson && to.kind !== 'stream') io.print(formatJson(report.summary))
  return report.problems.count === 0 ? 0 : EXIT_INCOMPLETE
}

/** Starts the sandbox if a request for a path says that it is stopped. */
export async function ensureRunning(
  transfer: Transfer,
  path: string,
  {
    api,
    sandbox,
    info,
  }: { readonly api: Api; readonly sandbox: string; readonly info: (message: string) => void },
): Promise<void> {
  try {
    await retryTransfer(
      transfer,
      () => transfer.remote.stat(path),
      () => 0,
    )
  } catch (caught) {
    const { code } = SandwireError.from(caught)
    // Reported later, where the path is used.
    if (code === 'file_not_found') return
    if (code !== 'sandbox_stopped') throw caught
    info(`starting ${sandbox}`)
    await api.request('POST', `/api/sandboxes/${sandbox}/start`)
  }
}
