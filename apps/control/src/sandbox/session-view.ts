import { sandboxIdOf } from '@sandwire/internal-api'
import { z } from 'zod'

/** Sessions of one sandbox that are looked at; sandboxd allows fewer. */
const MAX_SESSIONS = 1_000
const MAX_CMD_CHARS = 256
/** People of one session that are told, and how much of a name. */
const MAX_PEOPLE = 32
const MAX_NAME_CHARS = 64

const ms = z.int().nullable()

function printed(maxChars: number) {
  return z.string().transform((text) => text.replace(/\p{C}+/gu, ' ').slice(0, maxChars))
}

/** A session as sandboxd tells it. It lives next to the user's code, so it is narrowed like any stranger's word. */
const toldSession = z.object({
  id: z.string().max(128),
  state: z.enum(['pending', 'running', 'exited', 'gone']),
  mode: z.enum(['pipe', 'pty']),
  cmd: printed(MAX_CMD_CHARS),
  attachments: z.int().min(0).max(1_000_000),
  /** Names of those who are there; a sandboxd of before tells none. */
  people: z
    .array(printed(MAX_NAME_CHARS))
    .default([])
    .transform((names) => names.slice(0, MAX_PEOPLE)),
  /** What is still kept of its output. */
  output: z.object({ start: z.int().min(0), end: z.int().min(0) }),
  /** Null: a sandboxd of before does not tell. */
  createdMs: ms.default(null),
  lastInputMs: ms,
  lastOutputMs: ms,
  keepSeconds: z.int().min(0),
  /** Asked for when it was started: the sandbox does not sleep while it runs. */
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

/** What control keeps of a session. */
export type SessionFacts = z.infer<typeof toldSession>

/** One session, or undefined when it is not understood or another sandbox's. */
export function decodeOneSession(value: unknown, sandbox: string, nowMs: number): SessionFacts | undefined {
  const told = toldSession.safeParse(value)
  // A sandbox speaks for its own sessions only.
  if (!told.success || sandboxIdOf(told.data.id) !== sandbox) return undefined
  // Nor does it know the future: a time that never comes would keep it awake for good.
  const past = (ms: number | null): number | null => (ms === null ? null : Math.max(0, Math.min(ms, nowMs)))
  const { createdMs, lastInputMs, lastOutputMs } = told.data
  const times = {
    createdMs: past(createdMs),
    lastInputMs: past(lastInputMs),
    lastOutputMs: past(lastOutputMs),
  }
  return { ...told.data, ...times }
}

/** The sessions in an answer of `/activity`, or undefined when it is not understood. */
export function decodeActivity(
  value: unknown,
  sandbox: string,
  nowMs: number,
): readonly SessionFacts[] | undefined {
  const told = activity.safeParse(value)
  if (!told.success) return undefined
  return told.data.sessions
    .map((session) => decodeOneSession(session, sandbox, nowMs))
    .filter((session) => session !== undefined)
}

/** The session with what was said of its pin after its start, which counts more. */
export function withPin(session: SessionFacts, pins: ReadonlyMap<string, boolean>): SessionFacts {
  return { ...session, pinned: pins.get(session.id) ?? session.pinned }
}

/** Whether a session keeps its sandbox awake: it is pinned, and runs. */
export function keepsAwake({ state, pinned }: SessionFacts): boolean {
  return pinned && (state === 'pending' || state === 'running')
}

/** When a session last moved. */
export function lastMoveMs(session: SessionFacts): number {
  return Math.max(session.lastInputMs ?? 0, session.lastOutputMs ?? 0)
}
