import { shellQuote } from '@sandwire/shell-quote'
import { printable } from '../text/printable.ts'
import { formatAge, formatJson, formatTable } from '../text/table.ts'
import type { Command, CommandContext } from './command.ts'
import { optionalSandbox } from './positionals.ts'
import { decodeSessions, type Session } from './responses.ts'

const HEADER = ['SESSION', 'SANDBOX', 'COMMAND', 'STATE', 'ATTACHED', 'LAST ACTIVE']

function describeState({ state, exit }: Session): string {
  if (exit === undefined || exit === null) return state
  return `${state} (${exit.signal ?? exit.code ?? '?'})`
}

function lastActivityMs({ lastInputMs, lastOutputMs, createdMs }: Session): number | undefined {
  const known = [lastInputMs, lastOutputMs, createdMs].filter((ms) => ms !== undefined && ms !== null)
  return known.length === 0 ? undefined : Math.max(...known)
}

/** Sessions without a creation time come last. */
function newestFirst(sessions: readonly Session[]): readonly Session[] {
  return sessions.toSorted((a, b) => (b.createdMs ?? -1) - (a.createdMs ?? -1))
}

function printSessions(sessions: readonly Session[], { io, nowMs, program, server }: CommandContext): void {
  const [first] = sessions
  if (first === undefined) {
    io.info('no sessions')
    return
  }
  const rows = newestFirst(sessions).map((session) => [
    session.id,
    session.sandboxName ?? session.sandbox,
    session.cmd,
    describeState(session),
    String(session.attachments),
    formatAge(lastActivityMs(session), nowMs),
  ])
  io.print(formatTable(HEADER, rows, io.columns))
  const id = sessions.length === 1 ? printable(first.id) : 'SESSION'
  io.info(`attach with: ${program} ${shellQuote(server)} --session ${id}`)
}

/** Lists the sessions of all sandboxes, or of one. */
export const sessions: Command = {
  help: `Usage: sbx-stdio sessions [NAME] [--json]

Lists the sessions of your sandboxes, or of one, newest first: id, sandbox, command, state, number of attached clients,
and time since the last input or output. Attach to one with: sbx-stdio URL --session ID
A unique prefix of an id is enough, with or without the part before the dot.
`,
  options: {},
  parse: (options) => {
    const sandbox = optionalSandbox(options)
    return {
      ...(sandbox === undefined ? {} : { sandbox }),
      run: async (context) => {
        // Fails if the sandbox does not exist, instead of listing nothing.
        if (sandbox !== undefined) await context.api.request('GET', `/api/sandboxes/${sandbox}`)
        const response = await context.api.request('GET', '/api/account/sessions')
        const isSelected = (session: Session): boolean =>
          sandbox === undefined || session.sandbox === sandbox || session.sandboxName === sandbox
        if (context.isJson && sandbox === undefined) context.io.print(formatJson(response))
        else if (context.isJson)
          context.io.print(formatJson({ sessions: decodeSessions(response).filter(isSelected) }))
        else printSessions(decodeSessions(response).filter(isSelected), context)
      },
    }
  },
}
