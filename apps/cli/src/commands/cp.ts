import { parseLocation, parseTarget } from '../copy/location.ts'
import { UsageError } from '../errors/errors.ts'
import type { Command } from './command.ts'

/** Copies between this machine and a sandbox. */
export const cp: Command = {
  help: `Usage: sbx-stdio cp SOURCE TARGET

Copies a file or folder from this machine to a sandbox or back. One side is SANDBOX:PATH, a path in the workspace of
the sandbox (/workspace there); the other is a local path, or - for stdin or stdout. Write a local name with a colon
as ./a:b

  sbx-stdio cp notes.txt box:             into the workspace
  sbx-stdio cp src box:app                to app/src if the folder app exists, otherwise to app
  sbx-stdio cp src/. box:app              the contents of src, into app
  sbx-stdio cp box:out/report.pdf .
  sbx-stdio cp box:data.csv - | head

As with cp, a TARGET that is a device or FIFO is written to, and a SOURCE or TARGET that is a symlink is followed.

Modes, times and symlinks are kept. Symlinks that point outside the folder, and special files, are skipped and
reported. An interrupted copy resumes by itself; a large upload can be resumed within a day by running the same
command again. A stopped sandbox is started first.

  --quiet              print errors only

Exit status
  0 if everything was copied, 1 if something was skipped or changed while it was copied, 2 for wrong usage or a missing
  file, 255 for other failures
`,
  // `recursive` is accepted and ignored, for users who type `cp -r`.
  options: { quiet: 'flag', recursive: 'flag' },
  parse: (options) => {
    const [source, target, extra] = options.positionals
    if (source === undefined || target === undefined || extra !== undefined)
      throw new UsageError('Give a source and a target', 'sbx-stdio cp --help')
    const from = parseLocation(source)
    const to = parseTarget(target)
    const sandbox = from.kind === 'sandbox' ? from.sandbox : to.kind === 'sandbox' ? to.sandbox : undefined
    if (sandbox === undefined)
      throw new UsageError(
        'Neither side is in a sandbox',
        'use SANDBOX:PATH for one of them; list your sandboxes: sbx-stdio list',
      )
    if (from.kind === 'sandbox' && to.kind === 'sandbox')
      throw new UsageError('Both sides are in a sandbox', 'copy to this machine first')
    const isQuiet = options.has('quiet')
    return {
      sandbox,
      run: async (context) => {
        // Loaded on demand, because other commands do not need it.
        const { copy } = await import('../copy/copy.ts')
        return await copy({ from, to, sandbox, isQuiet }, context)
      },
    }
  },
}
