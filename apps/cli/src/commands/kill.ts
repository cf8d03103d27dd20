import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireSession } from './positionals.ts'
import { resolveSession, sandboxIdOf } from './session-id.ts'

/** Ends one session. */
export const kill: Command = {
  help: `Usage: sbx-stdio kill SESSION [--json]

Ends a session: its process gets SIGTERM, then SIGKILL. Attached clients see its exit.
SESSION is an id from sbx-stdio sessions, or a unique prefix of it.
`,
  options: {},
  parse: (options) => {
    const session = requireSession(options)
    const sandbox = sandboxIdOf(session)
    return {
      ...(sandbox === undefined ? {} : { sandbox }),
      run: async ({ api, io, isJson, urlOption }) => {
        const id = await resolveSession(session, { api, urlOption })
        const response = await api.request('DELETE', `/api/account/sessions/${id}`)
        if (isJson) io.print(formatJson(response ?? {}))
        else io.info('ending the session')
      },
    }
  },
}
