import { UsageError } from '../errors/errors.ts'
import type { Command } from './command.ts'
import { requireSandbox } from './positionals.ts'

/** Removes a sandbox and its files. */
export const rm: Command = {
  help: `Usage: sbx-stdio rm NAME [--force] [--json]

Ends all processes of a sandbox and removes it with its files. Asks for confirmation on a terminal.

  --force              do not ask
`,
  options: { force: 'flag' },
  parse: (options) => {
    const sandbox = requireSandbox(options)
    const isForced = options.has('force')
    return {
      sandbox,
      run: async ({ api, io, isJson, urlOption }) => {
        if (!isForced && io.confirm === undefined)
          throw new UsageError(
            `Cannot confirm the removal of "${sandbox}" without a terminal`,
            `sbx-stdio rm ${sandbox} --force${urlOption}`,
          )
        if (!isForced && !(await io.confirm?.(`Remove ${sandbox} and all its files?`))) {
          io.info(`${sandbox} was not removed`)
          return
        }
        await api.request('DELETE', `/api/sandboxes/${sandbox}`)
        if (isJson) io.print('{}\n')
        else io.info(`${sandbox} removed`)
      },
    }
  },
}
