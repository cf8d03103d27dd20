import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireGrant } from './positionals.ts'

/** Revokes a grant. */
export const revoke: Command = {
  help: `Usage: sbx-stdio revoke GRANT [--json]

Revokes access: an unused link stops working, and connections that use it are closed within seconds. GRANT is an id
from sbx-stdio grants SANDBOX.
`,
  options: {},
  parse: (options) => {
    const grant = requireGrant(options, 'grants SANDBOX')
    const sandbox = grant.slice(0, grant.indexOf('.'))
    return {
      sandbox,
      hintCommand: `grants ${sandbox}`,
      run: async ({ api, io, isJson }) => {
        const response = await api.request('DELETE', `/api/grants/${grant}`)
        if (isJson) io.print(formatJson(response ?? {}))
        else io.info('revoked; connections that use it are being closed')
      },
    }
  },
}
