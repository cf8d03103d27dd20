import type { Command } from './command.ts'
import { readSession } from './positionals.ts'

/** Ends one session. */
export const kill: Command = {
  help: `Usage: sbx-stdio kill SESSION [--json]

Ends a session: its process gets SIGHUP, then SIGKILL, and what it kept is gone.
`,
  options: {},
  read: (words) => {
    const session = readSession(words)
    return {
      sandbox: session.slice(0, session.indexOf('.')),
      run: async ({ api, io, isJson }) => {
        await api.request('DELETE', `/api/account/sessions/${session}`)
        if (isJson) io.print('{}\n')
        else io.say('the session is ended')
      },
    }
  },
}
