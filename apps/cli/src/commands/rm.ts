import { UsageError } from '../options/words.ts'
import type { Command } from './command.ts'
import { readSandbox } from './positionals.ts'

/** Removes a sandbox for good. */
export const rm: Command = {
  help: `Usage: sbx-stdio rm NAME [--force] [--json]

Ends every process of a sandbox and removes it, its files included. Asks first on a terminal.

  --force              do not ask
`,
  options: { force: 'flag' },
  read: (words) => {
    const sandbox = readSandbox(words)
    const isForced = words.has('force')
    return {
      sandbox,
      run: async ({ api, io, isJson, urlOption }) => {
        if (!isForced && io.confirm === undefined)
          throw new UsageError(
            `Cannot ask whether to remove "${sandbox}": this is no terminal`,
            `sbx-stdio rm ${sandbox} --force${urlOption}`,
          )
        if (!isForced && !(await io.confirm?.(`Remove ${sandbox} and all its files?`))) {
          io.say(`${sandbox} is left alone`)
          return
        }
        await api.request('DELETE', `/api/sandboxes/${sandbox}`)
        if (isJson) io.print('{}\n')
        else io.say(`${sandbox} is removed`)
      },
    }
  },
}
