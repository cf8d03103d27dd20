import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { readSession } from './positionals.ts'
import { resolveSession, sandboxIdOf } from './session-id.ts'

/** Ends one session. */
export const kill: Command = {
  help: `Usage: sbx-stdio kill SESSION [--json]

Ends a session: its process is asked to end, then made to. Whoever is attached sees its exit.
SESSION is an id from sbx-stdio sessions, or its beginning where only one begins so.
`,
  options: {},
  read: (words) => {
    const session = readSession(words)
    const sandbox = sandboxIdOf(session)
    return {
      ...(sandbox === undefined ? {} : { sandbox }),
      run: async ({ api, io, isJson, urlOption }) => {
        const whole = await resolveSession(session, { api, urlOption })
        const answer = await api.request('DELETE', `/api/account/sessions/${whole}`)
        if (isJson) io.print(formatJson(answer ?? {}))
        else io.say('the session is being ended')
      },
    }
  },
}
