import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { readSandbox } from './positionals.ts'
import { decodeSandbox } from './responses.ts'

/** Stops a sandbox: its processes end, its files stay. */
export const stop: Command = {
  help: `Usage: sbx-stdio stop NAME [--discard] [--json]

Ends every process of a sandbox. Its files stay, unless it is ephemeral.

  --discard            stop an ephemeral sandbox, although its files are lost
`,
  options: { discard: 'flag' },
  read: (words) => {
    const sandbox = readSandbox(words)
    const query = words.has('discard') ? '?discard=1' : ''
    return {
      sandbox,
      run: async ({ api, io, isJson }) => {
        const answer = await api.request('POST', `/api/sandboxes/${sandbox}/stop${query}`)
        if (isJson) io.print(formatJson(answer))
        else io.say(`${sandbox} is ${printable(decodeSandbox(answer).state)}`)
      },
    }
  },
}
