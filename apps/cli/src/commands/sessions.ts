import { shellQuote } from '@sandwire/shell-quote'
import { printable } from '../text/printable.ts'
import { formatAge, formatJson, formatTable } from '../text/table.ts'
import type { Command, CommandContext } from './command.ts'
import { optionalSandbox } from './positionals.ts'
import { decodeSessions, type Session } from './responses.ts'

const HEADER = ['SESSION', 'SANDBOX', 'COMMAND', 'STATE', 'ATTACHED', 'ACTIVE']

function describeState({ state, exit }: Session): string {
  if (exit === undefined || exit === null) return state
  return `${state} (${exit.signal ?? exit.code ?? '?'})`
}

function lastMoveMs({ lastInputMs, lastOutputMs, createdMs }: Session): number | undefined {
  const known = [lastInputMs, lastOutputMs, createdMs].filter((ms) => ms !== undefined && ms !== null)
  return known.length === 0 ? undefined : Math.max(...known)
}

/** Those whose beginning is not told come last. */
function newestFirst(sessions: readonly Session[]): readonly Session[] {
  return sessions.toSorted((a, b) => (b.createdMs ?? -1) - (a.createdMs ?? -1))
}

function show(sessions: readonly Session[], { io, nowMs, program, server }: CommandContext): void {
  const [first] = sessions
  if (first === undefined) {
    io.say('no sessions')
    return
  }
  const rows = newestFirst(sessions).map((session) => [
    session.id,
    session.sandboxName ?? session.sandbox,
    session.cmd,
    describeState(session),
    String(session.attachments),
    formatAge(lastMoveMs(session), nowMs),
  ])
  io.print(formatTable(HEADER, rows, io.columns))
  const id = sessions.length === 1 ? printable(first.id) : 'SESSION'
  io.say(`come back with: ${program} ${shellQuote(server)} --session ${id}`)
}

/** Shows the sessions of all sandboxes, or of one. */
export const sessions: Command = {
  help: `Usage: sbx-stdio sessions [NAME] [--json]

Lists the sessions of your sandboxes, or of one, the newest first: id, sandbox, command, state, how many are attached,
and how long ago something was read or written. Come back to one with: sbx-stdio URL --session ID
The beginning of an id is enough, with the part before the dot or without, where only one begins so.
`,
  options: {},
  read: (words) => {
    const sandbox = optionalSandbox(words)
    return {
      ...(sandbox === undefined ? {} : { sandbox }),
      run: async (context) => {
        // A sandbox that does not exist is an error, not one without sessions.
        if (sandbox !== undefined) await context.api.request('GET', `/api/sandboxes/${sandbox}`)
        const answer = await context.api.request('GET', '/api/account/sessions')
        const isMeant = (session: Session): boolean =>
          sandbox === undefined || session.sandbox === sandbox || session.sandboxName === sandbox
        if (context.isJson && sandbox === undefined) context.io.print(formatJson(answer))
        else if (context.isJson)
          context.io.print(formatJson({ sessions: decodeSessions(answer).filter(isMeant) }))
        else show(decodeSessions(answer).filter(isMeant), context)
      },
    }
  },
}
