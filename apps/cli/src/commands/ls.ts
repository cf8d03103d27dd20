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
import { UsageError } from '../options/words.ts'
import type { Command, CommandContext } from './command.ts'

/** A file is a list of itself. */
async function* entriesOf(transfer: Transfer, path: string): AsyncGenerator<readonly RemoteEntry[]> {
  const stat = await statRemote(transfer, path)
  if (stat === undefined)
    throw new HintedError(
      // As for cp: what was typed is wrong.
      'bad_request',
      `Cannot list "${printable(path)}": no such file in the sandbox`,
      'check the path',
    )
  const isFolder = stat.kind === 'folder' || (stat.kind === 'link' && stat.target === 'folder')
  if (isFolder) yield* transfer.remote.list(path)
  else yield [{ ...stat, name: baseName(path) ?? path }]
}

/** One name: as it is for a program, in printable characters for a person. */
function formatName({ name }: RemoteEntry, isTerminal: boolean): string | Uint8Array {
  if (isTerminal) return `${escapeName(name)}\n`
  return Buffer.concat([pathToBytes(name) ?? new Uint8Array(0), Buffer.from('\n')])
}

async function run(
  place: { sandbox: string; path: string },
  isLong: boolean,
  context: CommandContext,
): Promise<void> {
  const { api, io, isJson, nowMs } = context
  using interruption = io.openInterruption()
  const { signal } = interruption
  using report = new CopyReport(undefined, () => 0)
  const transfer: Transfer = { remote: new RemoteWorkspace(api, place.sandbox, signal), report, signal }
  await ensureRunning(transfer, place.path, { api, sandbox: place.sandbox, say: io.say })
  const all: RemoteEntry[] = []
  for await (const page of entriesOf(transfer, place.path)) {
    if (isJson) all.push(...page)
    else if (isLong) io.print(formatLongListing(page, nowMs))
    else for (const entry of page) io.print(formatName(entry, io.columns !== undefined))
  }
  if (isJson) io.print(formatJson({ path: place.path, entries: all }))
}

/** Lists a folder of a sandbox. */
export const ls: Command = {
  help: `Usage: sbx-stdio ls SANDBOX[:PATH] [-l] [--json]

Lists a folder in the workspace of a sandbox, or a file: one name a line, by the order of their bytes. A sandbox that
is stopped is started first.

  -l, --long           kind and mode, size, time of the last change, name, and whether a link leads to a file or a folder
  -a, --all            changes nothing: names that begin with a dot are always listed

Exit status
  0 when it was listed, 2 for wrong usage and for what is not there, 255 when it failed
`,
  options: { long: 'flag', all: 'flag' },
  read: (words) => {
    const [word, further] = words.positionals
    if (word === undefined || further !== undefined) throw new UsageError('Give one place, as SANDBOX:PATH')
    const place = parseLocation(word.includes(':') ? word : `${word}:`)
    if (place.is !== 'sandbox')
      throw new UsageError('This is no place in a sandbox', 'write it as SANDBOX:PATH')
    const isLong = words.has('long')
    return { sandbox: place.sandbox, run: (context) => run(place, isLong, context) }
  },
}
