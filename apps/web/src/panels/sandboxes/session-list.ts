import type { Session } from '../../api/sessions.ts'
import { displayTitle } from '../../files/display-name.ts'
import { formatRelativeTime } from '../../shell/format-time.ts'
import { baseName } from '../../shell/titles.ts'
import type { OpenSession } from '../../terminals/open-sessions.ts'
import { agentTexts } from '../../texts/agents.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'

/** A row of the session list. */
export interface SessionLine {
  readonly session: Session
  /** Title or command, numbered when several sessions of a sandbox share it. */
  readonly name: string
  readonly sandboxName: string
  readonly started: string
  readonly people: string
  /** Of the interface of a coding agent; empty for other sessions. */
  readonly spent: string
  /** The session is open in a tab of this page. */
  readonly isOpen: boolean
}

/** Context for the list, besides the sessions. */
interface SessionListContext {
  readonly open: Readonly<Record<string, OpenSession>>
  /** The user's own name. */
  readonly self: string
  readonly nowMs: number
  readonly nameSandbox: (sandbox: string) => string
}

const MAX_NAMED = 3
const { sessions: texts } = sandboxTexts

/** Who is attached, the user first. */
export function participantsText(session: Session, open: OpenSession | undefined, self: string): string {
  if (open?.isAttached === true) return listed([texts.you, ...open.others])
  const attached = session.people ?? []
  // The list may predate the loss of this page's own connection.
  const people = open === undefined ? attached : attached.filter((name) => name !== self)
  if (open !== undefined && people.length === 0) return ''
  if (people.length === 0)
    return session.attachments === 0 ? texts.detached : texts.attached(session.attachments)
  return listed(people.map((name) => (name === self ? texts.inAnotherWindow : displayTitle(name))))
}

function listed(names: readonly string[]): string {
  const more = names.length - MAX_NAMED
  return [...names.slice(0, MAX_NAMED), ...(more > 0 ? [texts.more(more)] : [])].join(', ')
}

function startedText(createdMs: number | null | undefined, nowMs: number): string {
  if (createdMs === null || createdMs === undefined) return ''
  const when = formatRelativeTime(createdMs, nowMs)
  return when === 'now' ? texts.justStarted : texts.started(when)
}

function spentText({ usage, budgetUsd = 0 }: Session): string {
  if (usage === undefined) return ''
  return agentTexts.run.spent(agentTexts.spend(usage.costUsd), agentTexts.spend(budgetUsd))
}

/** The rows, sorted by sandbox and start time. */
export function listSessionLines(
  sessions: readonly Session[],
  context: SessionListContext,
): readonly SessionLine[] {
  const { open, self, nowMs } = context
  const running = sessions.filter(({ id }) => open[id]?.hasEnded !== true)
  const lines = running.map((session) => {
    const openSession = open[session.id]
    const attached = openSession?.title ?? ''
    return {
      session,
      name: displayTitle(attached === '' ? baseName(session.cmd) : attached),
      sandboxName: context.nameSandbox(session.sandbox),
      started: startedText(session.createdMs, nowMs),
      people: participantsText(session, openSession, self),
      spent: spentText(session),
      isOpen: openSession !== undefined,
    }
  })
  return numbered(
    lines.toSorted(
      (left, right) =>
        left.sandboxName.localeCompare(right.sandboxName, 'en') ||
        (left.session.createdMs ?? 0) - (right.session.createdMs ?? 0),
    ),
  )
}

/** Numbers rows that would otherwise look the same. */
function numbered(lines: readonly SessionLine[]): readonly SessionLine[] {
  const isAlike = (left: SessionLine, right: SessionLine): boolean =>
    left.name === right.name && left.sandboxName === right.sandboxName
  return lines.map((line, at) => {
    if (lines.filter((other) => isAlike(other, line)).length === 1) return line
    const before = lines.slice(0, at).filter((other) => isAlike(other, line)).length
    return { ...line, name: `${line.name} ${before + 1}` }
  })
}
