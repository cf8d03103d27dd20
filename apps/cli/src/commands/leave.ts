import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireGrant } from './positionals.ts'

/** Gives up access that another user granted. */
export const leave: Command = {
  help: `Usage: sbx-stdio leave GRANT [--json]

Gives up access that was shared with you. Your connections there are closed within seconds, and you need a new link
to get access again. GRANT is an id from sbx-stdio grants.
`,
  options: {},
  parse: (options) => {
    const grant = requireGrant(options, 'grants')
    return {
      hintCommand: 'grants',
      run: async ({ api, io, isJson }) => {
        const response = await api.request('DELETE', `/api/account/grants/${grant}`)
        if (isJson) io.print(formatJson(response ?? {}))
        else io.info('access given up; your connections there are being closed')
      },
    }
  },
}
