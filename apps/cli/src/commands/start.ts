import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { readSandbox } from './positionals.ts'
import { decodeSandbox } from './responses.ts'

/** Starts a sandbox; one that runs is left alone. */
export const start: Command = {
  help: `Usage: sbx-stdio start NAME [--json]

Starts a sandbox that was stopped. Its files are as they were.
`,
  options: {},
  read: (words) => {
    const sandbox = readSandbox(words)
    return {
      sandbox,
      run: async ({ api, io, isJson }) => {
        const answer = await api.request('POST', `/api/sandboxes/${sandbox}/start`)
        if (isJson) io.print(formatJson(answer))
        else io.say(`${sandbox} is ${printable(decodeSandbox(answer).state)}`)
      },
    }
  },
}
