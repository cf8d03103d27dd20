import { UsageError } from '../errors/errors.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { SANDBOX_NAME } from './positionals.ts'
import { parseVersion } from './version-argument.ts'

/** Makes a new sandbox from a saved version. */
export const fork: Command = {
  help: `Usage: sbx-stdio fork SANDBOX@VERSION NAME [--json]

Creates a sandbox with the files of a saved version and the settings of its sandbox, and starts it. The two are
independent from then on; what they have in common is stored once.

  sbx-stdio fork dev@before-upgrade experiment
`,
  options: {},
  parse: ({ positionals }) => {
    const [text = '', name, extra] = positionals
    const { sandbox, version } = parseVersion(text)
    if (name === undefined || extra !== undefined)
      throw new UsageError('Give a version and a name for the new sandbox', 'sbx-stdio fork --help')
    if (!SANDBOX_NAME.test(name))
      throw new UsageError('Invalid sandbox name: use lower-case letters, digits and hyphens (max 63)')
    return {
      sandbox,
      hintCommand: `checkpoints ${sandbox}`,
      run: async ({ api, io, isJson }) => {
        const path = `/api/sandboxes/${sandbox}/checkpoints/${version}/fork`
        const response = await api.request('POST', path, { name })
        if (isJson) io.print(formatJson(response))
        else io.info(`${name} has the files of ${sandbox}@${version}`)
      },
    }
  },
}
