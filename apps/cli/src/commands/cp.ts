import { parseLocation, readTarget } from '../copy/location.ts'
import { UsageError } from '../options/words.ts'
import type { Command } from './command.ts'

/** Copies between this machine and a sandbox. */
export const cp: Command = {
  help: `Usage: sbx-stdio cp SOURCE TARGET

Copies a file or a folder, with all that is in it, from this machine to a sandbox or back. One of the two is
SANDBOX:PATH, with a path in the workspace of the sandbox (/workspace there); the other one is a path here, or - for
standard input or output. A local name with a colon needs a slash before it: ./a:b

  sbx-stdio cp notes.txt box:             into the workspace
  sbx-stdio cp src box:app                as app/src if app is there, or else as app
  sbx-stdio cp src/. box:app              what is in src, into app
  sbx-stdio cp box:out/report.pdf .
  sbx-stdio cp box:data.csv - | head

A file goes into a device or a pipe that is named, and to where a link that is named leads, as with cp.

Modes, times and links are kept. Links that lead out of the folder, and what is neither a file nor a folder, are left
out and told. A copy that is cut goes on by itself where it was; a large file that was given up on its way to a sandbox
goes on when it is copied again within a day. A sandbox that is stopped is started first.

  --quiet              no progress, and no talk but errors

Exit status
  0 when everything was copied, 1 when something was left out or changed meanwhile, 2 for wrong usage and for what
  is not there, 255 when it failed
`,
  options: { quiet: 'flag', recursive: 'flag' },
  read: (words) => {
    const [source, target, further] = words.positionals
    if (source === undefined || target === undefined || further !== undefined)
      throw new UsageError('Give a source and a target', 'sbx-stdio cp --help')
    const from = parseLocation(source)
    const to = readTarget(target)
    const sandbox = from.is === 'sandbox' ? from.sandbox : to.is === 'sandbox' ? to.sandbox : undefined
    if (sandbox === undefined)
      throw new UsageError(
        'Neither side is in a sandbox',
        'write it as SANDBOX:PATH; see which there are: sbx-stdio list',
      )
    if (from.is === 'sandbox' && to.is === 'sandbox')
      throw new UsageError('Both sides are in a sandbox', 'copy to this machine first, and from here')
    const isQuiet = words.has('quiet')
    return {
      sandbox,
      run: async (context) => {
        // Loaded here, because other commands need none of it.
        const { copy } = await import('../copy/copy.ts')
        return await copy({ from, to, sandbox, isQuiet }, context)
      },
    }
  },
}
