import { sandboxIdOf, sandboxIdOfConversation, sandboxIdOfRun } from '@sandwire/internal-api'
import { z } from 'zod'

/** Most sessions of one sandbox; sandboxd allows fewer. */
const MAX_SESSIONS = 1_000
const MAX_CMD_CHARS = 256
/** Names of attached users that are shown, and their length. */
const MAX_USERS = 32
const MAX_NAME_CHARS = 64

const ms = z.int().nullable()

function printed(maxChars: number) {
  return z.string().transform((text) => text.replace(/\p{C}+/gu, ' ').slice(0, maxChars))
}

/** A session as sandboxd reports it. sandboxd runs next to untrusted code, so all of it is validated. */
const reportedSession = z.object({
  id: z.string().max(128),
  state: z.enum(['pending', 'running', 'exited', 'gone']),
  mode: z.enum(['pipe', 'pty']),
  cmd: printed(MAX_CMD_CHARS),
  /** The run of a coding agent that opened it, as sandboxd names the run. */
  agentRun: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .exactOptional(),
  /** It is the interface of a coding agent. */
  agentInterface: z.boolean().exactOptional(),
  attachments: z.int().min(0).max(1_000_000),
  /** Names of the attached users. */
  people: z
    .array(printed(MAX_NAME_CHARS))
    .default([])
    .transform((names) => names.slice(0, MAX_USERS)),
  /** Offsets of the stored output. */
  output: z.object({ start: z.int().min(0), end: z.int().min(0) }),
  /** Null: not known. */
  createdMs: ms.default(null),
  lastInputMs: ms,
  lastOutputMs: ms,
  keepSeconds: z.int().min(0),
  /** Set at its start: the sandbox does not stop for being idle while it runs. */
  pinned: z.boolean().default(false),
  exit: z
    .object({
      code: z.int().min(-1).max(0xffff_ffff).nullable(),
      signal: z
        .string()
        .regex(/^[A-Z0-9+-]{1,16}$/)
        .nullable(),
      truncated: z.boolean(),
    })
    .nullable(),
})
const activity = z.object({ sessions: z.array(z.unknown()).max(MAX_SESSIONS) })

/** A session as control stores it. */
export type SessionFacts = z.infer<typeof reportedSession>

/** Parses a session; undefined when it is malformed or belongs to another sandbox. */
export function decodeOneSession(value: unknown, sandbox: string, nowMs: number): SessionFacts | undefined {
  const parsed = reportedSession.safeParse(value)
  // A sandbox may report its own sessions only.
  if (!parsed.success || sandboxIdOf(parsed.data.id) !== sandbox) return undefined
  // A time in the future would keep the sandbox running forever.
  const past = (ms: number | null): number | null => (ms === null ? null : Math.max(0, Math.min(ms, nowMs)))
  const { createdMs, lastInputMs, lastOutputMs } = parsed.data
  const times = {
    createdMs: past(createdMs),
    lastInputMs: past(lastInputMs),
    lastOutputMs: past(lastOutputMs),
  }
  return { ...parsed.data, ...times }
}

/** Parses the sessions of an `/activity` response; undefined when it is malformed. */
export function decodeActivity(
  value: unknown,
  sandbox: string,
  nowMs: number,
): readonly SessionFacts[] | undefined {
  const parsed = activity.safeParse(value)
  if (!parsed.success) return undefined
  return parsed.data.sessions
    .map((session) => decodeOneSession(session, sandbox, nowMs))
    .filter((session) => session !== undefined)
}

/** Applies a pin that was changed after the session's start. */
export function withPin(session: SessionFacts, pins: ReadonlyMap<string, boolean>): SessionFacts {
  return { ...session, pinned: pins.get(session.id) ?? session.pinned }
}

/** Pinned sessions. Runs have pins too, from their start to their end, and conversations while their agents work. */
export function sessionPins(pins: ReadonlyMap<string, boolean>): readonly string[] {
  return [...pins.keys()].filter(
    (id) => sandboxIdOfRun(id) === undefined && sandboxIdOfConversation(id) === undefined,
  )
}

/** Conversations whose agents work in the sandbox. */
export function conversationPins(pins: ReadonlyMap<string, boolean>): readonly string[] {
  return [...pins.keys()].filter((id) => sandboxIdOfConversation(id) !== undefined)
}

/** Runs that have not ended, and conversations whose agents work, in the sandbox. */
export function agentPins(pins: ReadonlyMap<string, boolean>): readonly string[] {
  const sessions = new Set(sessionPins(pins))
  return [...pins.keys()].filter((id) => !sessions.has(id))
}

/** True while a run works in the sandbox. */
export function hasRun(pins: ReadonlyMap<string, boolean>): boolean {
  return agentPins(pins).length > 0
}

/** True when a session keeps its sandbox from stopping: it is pinned and runs. */
export function keepsAwake({ state, pinned }: SessionFacts): boolean {
  return pinned && (state === 'pending' || state === 'running')
}

/** Time of the last input or output. */
export function lastActivityMs(session: SessionFacts): number {
  return Math.max(session.lastInputMs ?? 0, session.lastOutputMs ?? 0)
}
