import { sandboxOfSession } from '@sandwire/internal'
import { z } from 'zod'

/** Sessions of one sandbox that are looked at; sandboxd allows fewer. */
const MAX_SESSIONS = 1_000
const MAX_CMD_CHARS = 256

const ms = z.int().nullable()

/** A session as sandboxd tells it. It lives next to the user's code, so it is narrowed like any stranger's word. */
const toldSession = z.object({
  id: z.string().max(128),
  state: z.enum(['pending', 'running', 'exited', 'gone']),
  mode: z.enum(['pipe', 'pty']),
  cmd: z.string().transform((text) => text.replace(/\p{C}+/gu, ' ').slice(0, MAX_CMD_CHARS)),
  attachments: z.int().min(0).max(1_000_000),
  lastInputMs: ms,
  lastOutputMs: ms,
  keepSeconds: z.int().min(0),
  exit: z
    .object({
      code: z.int().nullable(),
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

function decodeSession(value: unknown, sandbox: string): SessionFacts | undefined {
  const told = toldSession.safeParse(value)
  // A sandbox speaks for its own sessions only.
  return told.success && sandboxOfSession(told.data.id) === sandbox ? told.data : undefined
}

/** The sessions in an answer of `/activity`, or undefined when it is not understood. */
export function decodeActivity(value: unknown, sandbox: string): readonly SessionFacts[] | undefined {
  const told = activity.safeParse(value)
  if (!told.success) return undefined
  return told.data.sessions
    .map((session) => decodeSession(session, sandbox))
    .filter((session) => session !== undefined)
}

/** One session, or undefined when it is not understood or another sandbox's. */
export const decodeOneSession = decodeSession

/** When a session last moved. */
export function lastMoveMs(session: SessionFacts): number {
  return Math.max(session.lastInputMs ?? 0, session.lastOutputMs ?? 0)
}
