import { bytesOfPath } from '@sandwire/protocol'
import { Copying } from '../copy/copying.ts'
import { lookFor } from '../copy/ends.ts'
import type { Journey } from '../copy/journey.ts'
import { lastName, readPlace } from '../copy/place.ts'
import { type RemoteEntry, RemoteWorkspace } from '../copy/remote-workspace.ts'
import { wakeSandbox } from '../copy/wake-sandbox.ts'
import { AdvisedError } from '../errors/advised-error.ts'
import { escapeName, spellLong } from '../text/file-lines.ts'
import { printable } from '../text/printable.ts'
import { spellJson } from '../text/table.ts'
import { Wrong } from '../options/words.ts'
import type { Command, CommandContext } from './command.ts'

/** A file is a list of itself. */
async function* entriesOf(journey: Journey, path: string): AsyncGenerator<readonly RemoteEntry[]> {
  const stat = await lookFor(journey, path)
  if (stat === undefined)
    throw new AdvisedError(
      // As for cp: what was typed is wrong.
      'bad_request',
      `Cannot list "${printable(path)}": no such file in the sandbox`,
      'check the path',
    )
  const isFolder = stat.kind === 'folder' || (stat.kind === 'link' && stat.target === 'folder')
  if (isFolder) yield* journey.remote.list(path)
  else yield [{ ...stat, name: lastName(path) ?? path }]
}

/** One name: as it is for a program, in printable characters for a person. */
function spellName({ name }: RemoteEntry, isTerminal: boolean): string | Uint8Array {
  if (isTerminal) return `${escapeName(name)}\n`
  return Buffer.concat([bytesOfPath(name) ?? new Uint8Array(0), Buffer.from('\n')])
}

async function run(
  place: { sandbox: string; path: string },
  isLong: boolean,
  context: CommandContext,
): Promise<void> {
  const { api, io, isJson, nowMs } = context
  using interruption = io.openInterruption()
  const { signal } = interruption
  using copying = new Copying(undefined, () => 0)
  const journey: Journey = { remote: new RemoteWorkspace(api, place.sandbox, signal), copying, signal }
  await wakeSandbox(journey, place.path, { api, sandbox: place.sandbox, say: io.say })
  const all: RemoteEntry[] = []
  for await (const page of entriesOf(journey, place.path)) {
    if (isJson) all.push(...page)
    else if (isLong) io.print(spellLong(page, nowMs))
    else for (const entry of page) io.print(spellName(entry, io.columns !== undefined))
  }
  if (isJson) io.print(spellJson({ path: place.path, entries: all }))
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
    if (word === undefined || further !== undefined) throw new Wrong('Give one place, as SANDBOX:PATH')
    const place = readPlace(word.includes(':') ? word : `${word}:`)
    if (place.is !== 'sandbox') throw new Wrong('This is no place in a sandbox', 'write it as SANDBOX:PATH')
    const isLong = words.has('long')
    return { sandbox: place.sandbox, run: (context) => run(place, isLong, context) }
  },
}
