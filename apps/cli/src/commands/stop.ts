import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireSandbox } from './positionals.ts'
import { decodeSandbox } from './responses.ts'

/** Stops a sandbox; its files are kept. */
export const stop: Command = {
  help: `Usage: sbx-stdio stop NAME [--discard] [--json]

Ends all processes of a sandbox. Its files are saved and kept, unless it is ephemeral.

  --discard            stop although the files cannot be saved, or the sandbox is ephemeral. Where a stop loses them,
                       as in containers, what was not saved is lost
`,
  options: { discard: 'flag' },
  parse: (options) => {
    const sandbox = requireSandbox(options)
    const query = options.has('discard') ? '?discard=1' : ''
    return {
      sandbox,
      run: async ({ api, io, isJson }) => {
        const response = await api.request('POST', `/api/sandboxes/${sandbox}/stop${query}`)
        if (isJson) io.print(formatJson(response))
        else io.info(`${sandbox} is ${printable(decodeSandbox(response).state)}`)
      },
    }
  },
}
