import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireSandbox } from './positionals.ts'
import { decodeSandbox } from './responses.ts'

/** Starts a sandbox; no effect if it is running. */
export const start: Command = {
  help: `Usage: sbx-stdio start NAME [--json]

Starts a stopped sandbox. Its files are kept.
`,
  options: {},
  parse: (options) => {
    const sandbox = requireSandbox(options)
    return {
      sandbox,
      run: async ({ api, io, isJson }) => {
        const response = await api.request('POST', `/api/sandboxes/${sandbox}/start`)
        if (isJson) io.print(formatJson(response))
        else io.info(`${sandbox} is ${printable(decodeSandbox(response).state)}`)
      },
    }
  },
}
