import { pathToBytes } from '@sandwire/protocol'
import { CopyReport } from '../copy/progress.ts'
import { baseName, statRemote, parseLocation } from '../copy/location.ts'
import type { Transfer } from '../copy/transfer.ts'
import { type RemoteEntry, RemoteWorkspace } from '../copy/remote-workspace.ts'
import { ensureRunning } from '../copy/copy.ts'
import { HintedError } from '../errors/errors.ts'
import { escapeName, formatLongListing } from '../text/file-lines.ts'
import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'
import { UsageError } from '../errors/errors.ts'
import type { Command, CommandContext } from './command.ts'

/** The entries of a folder; for a file, the file itself. */
async function* entriesOf(transfer: Transfer, path: string): AsyncGenerator<readonly RemoteEntry[]> {
  const stat = await statRemote(transfer, path)
  if (stat === undefined)
    throw new HintedError(
      // Exit code 2, as for cp: the argument is wrong.
      'bad_request',
      `Cannot list "${printable(path)}": no such file in the sandbox`,
      'check the path',
    )
  const isFolder = stat.kind === 'folder' || (stat.kind === 'link' && stat.target === 'folder')
  if (isFolder) yield* transfer.remote.list(path)
  else yield [{ ...stat, name: baseName(path) ?? path }]
}

/** A name: escaped for a terminal, raw bytes otherwise. */
function formatName({ name }: RemoteEntry, isTerminal: boolean): string | Uint8Array {
  if (isTerminal) return `${escapeName(name)}\n`
  return Buffer.concat([pathToBytes(name) ?? new Uint8Array(0), Buffer.from('\n')])
}

async function run(
  location: { sandbox: string; path: string },
  isLong: boolean,
  context: CommandContext,
): Promise<void> {
  const { api, io, isJson, nowMs } = context
  using interruption = io.openInterruption()
  const { signal } = interruption
  using report = new CopyReport(undefined, () => 0)
  const transfer: Transfer = { remote: new RemoteWorkspace(api, location.sandbox, signal), report, signal }
  await ensureRunning(transfer, location.path, { api, sandbox: location.sandbox, info: io.info })
  const all: RemoteEntry[] = []
  for await (const page of entriesOf(transfer, location.path)) {
    if (isJson) all.push(...page)
    else if (isLong) io.print(formatLongListing(page, nowMs))
    else for (const entry of page) io.print(formatName(entry, io.columns !== undefined))
  }
  if (isJson) io.print(formatJson({ path: location.path, entries: all }))
}

/** Lists a folder of a sandbox. */
export const ls: Command = {
  help: `Usage: sbx-stdio ls SANDBOX[:PATH] [-l] [--json]

Lists a file or folder in the workspace of a sandbox, one name per line, in byte order. A stopped sandbox is started
first.

  -l, --long           kind and mode, size, modification time, name, and what a link points to
  -a, --all            no effect: names that start with a dot are always listed

Exit status
  0 on success, 2 for wrong usage or a missing file, 255 for other failures
`,
  options: { long: 'flag', all: 'flag' },
  parse: (options) => {
    const [argument, further] = options.positionals
    if (argument === undefined || further !== undefined)
      throw new UsageError('Give one path, as SANDBOX:PATH')
    const location = parseLocation(argument.includes(':') ? argument : `${argument}:`)
    if (location.kind !== 'sandbox')
      throw new UsageError('This is not a path in a sandbox', 'use SANDBOX:PATH')
    const isLong = options.has('long')
    return { sandbox: location.sandbox, run: (context) => run(location, isLong, context) }
  },
}
