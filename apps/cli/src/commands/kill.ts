import { spellJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { readSession } from './positionals.ts'

/** Ends one session. */
export const kill: Command = {
  help: `Usage: sbx-stdio kill SESSION [--json]

Ends a session: its process is asked to end, then made to. Whoever is attached sees its exit.
`,
  options: {},
  read: (words) => {
    const session = readSession(words)
    return {
      sandbox: session.slice(0, session.indexOf('.')),
      run: async ({ api, io, isJson }) => {
        const answer = await api.request('DELETE', `/api/account/sessions/${session}`)
        if (isJson) io.print(spellJson(answer ?? {}))
        else io.say('the session is being ended')
      },
    }
  },
}
