import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { readGrant } from './positionals.ts'

/** Withdraws what was shared. */
export const revoke: Command = {
  help: `Usage: sbx-stdio revoke GRANT [--json]

Withdraws what was shared: a link that was not used yet is worth nothing from now on, and whoever is attached with it
is cut off within seconds. GRANT is an id from sbx-stdio grants SANDBOX.
`,
  options: {},
  read: (words) => {
    const grant = readGrant(words, 'grants SANDBOX')
    const sandbox = grant.slice(0, grant.indexOf('.'))
    return {
      sandbox,
      listCommand: `grants ${sandbox}`,
      run: async ({ api, io, isJson }) => {
        const answer = await api.request('DELETE', `/api/grants/${grant}`)
        if (isJson) io.print(formatJson(answer ?? {}))
        else io.say('withdrawn; whoever is attached with it is being cut off')
      },
    }
  },
}
