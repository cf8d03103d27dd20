import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireGrant } from './positionals.ts'

/** Revokes a grant. */
export const revoke: Command = {
  help: `Usage: sbx-stdio revoke GRANT [--end-sessions] [--json]

Revokes access: an unused link stops working, and connections that use it are closed within seconds. GRANT is an id
from sbx-stdio grants SANDBOX.

  --end-sessions       also end the sessions that were started with this access; otherwise they keep running
`,
  options: { 'end-sessions': 'flag' },
  parse: (options) => {
    const grant = requireGrant(options, 'grants SANDBOX')
    const sandbox = grant.slice(0, grant.indexOf('.'))
    const endsSessions = options.has('end-sessions')
    return {
      sandbox,
      hintCommand: `grants ${sandbox}`,
      run: async ({ api, io, isJson }) => {
        const query = endsSessions ? '?endSessions=1' : ''
        const response = await api.request('DELETE', `/api/grants/${grant}${query}`)
        if (isJson) io.print(formatJson(response ?? {}))
        else if (endsSessions) io.info('revoked; its connections are being closed and its sessions ended')
        else io.info('revoked; connections that use it are being closed')
      },
    }
  },
}
