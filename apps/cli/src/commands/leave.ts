import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { readGrant } from './positionals.ts'

/** Gives back what somebody else shares. */
export const leave: Command = {
  help: `Usage: sbx-stdio leave GRANT [--json]

Gives back what somebody shares with you: you can no longer go there, and what you have attached there is cut off within
seconds. To come back you need a new link. GRANT is an id from sbx-stdio grants.
`,
  options: {},
  read: (words) => {
    const grant = readGrant(words, 'grants')
    return {
      listCommand: 'grants',
      run: async ({ api, io, isJson }) => {
        const answer = await api.request('DELETE', `/api/account/grants/${grant}`)
        if (isJson) io.print(formatJson(answer ?? {}))
        else io.say('left; what you have attached there is being cut off')
      },
    }
  },
}
