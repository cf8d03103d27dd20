import { shape } from '@sandwire/protocol'
import { atLeast, decodeAnswer as decode } from '../server/at-least.ts'

const word = shape.text(64)
const optionalMs = shape.optional(shape.nullable(shape.offset))

const sandboxShape = atLeast({
  id: shape.text(64),
  name: shape.text(128),
  /** Not narrowed further: a newer server may know more states. */
  state: word,
  reason: shape.optional(shape.nullable(shape.text(256))),
  createdMs: shape.offset,
  lastActivityMs: optionalMs,
  ephemeral: shape.optional(shape.bool),
  isolation: shape.optional(shape.nullable(word)),
  /** Whose it is, where it is somebody else's. */
  owner: shape.optional(shape.text(256)),
  network: shape.optional(atLeast({ policy: word, allow: shape.list(shape.text(253), 1_000) })),
})
export type Sandbox = shape.Decoded<typeof sandboxShape>

const sessionShape = atLeast({
  id: shape.text(128),
  sandbox: shape.text(128),
  sandboxName: shape.optional(shape.text(128)),
  state: word,
  mode: shape.optional(word),
  cmd: shape.text(64 * 1024),
  attachments: shape.offset,
  createdMs: optionalMs,
  lastInputMs: optionalMs,
  lastOutputMs: optionalMs,
  exit: shape.optional(
    shape.nullable(
      atLeast({ code: shape.nullable(shape.whole(-1, 0xffff_ffff)), signal: shape.nullable(word) }),
    ),
  ),
})
export type Session = shape.Decoded<typeof sessionShape>

const MAX_ITEMS = 100_000
const sandboxesShape = atLeast({ sandboxes: shape.list(sandboxShape, MAX_ITEMS) })
const sessionsShape = atLeast({ sessions: shape.list(sessionShape, MAX_ITEMS) })

export function decodeSandbox(value: unknown): Sandbox {
  return decode(sandboxShape, value)
}

export function decodeSandboxes(value: unknown): readonly Sandbox[] {
  return decode(sandboxesShape, value).sandboxes
}

export function decodeSessions(value: unknown): readonly Session[] {
  return decode(sessionsShape, value).sessions
}
