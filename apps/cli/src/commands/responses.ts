import { shape } from '@sandwire/protocol'
import { openRecord, decodeResponse, decodeResponse as decode } from '../server/response.ts'

const word = shape.text(64)
const optionalMs = shape.optional(shape.nullable(shape.offset))

const sandboxShape = openRecord({
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
  network: shape.optional(openRecord({ policy: word, allow: shape.list(shape.text(253), 1_000) })),
})
export type Sandbox = shape.Decoded<typeof sandboxShape>

const sessionShape = openRecord({
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
      openRecord({ code: shape.nullable(shape.whole(-1, 0xffff_ffff)), signal: shape.nullable(word) }),
    ),
  ),
})
export type Session = shape.Decoded<typeof sessionShape>

const MAX_ITEMS = 100_000
const sandboxesShape = openRecord({ sandboxes: shape.list(sandboxShape, MAX_ITEMS) })
const sessionsShape = openRecord({ sessions: shape.list(sessionShape, MAX_ITEMS) })

export function decodeSandbox(value: unknown): Sandbox {
  return decode(sandboxShape, value)
}

export function decodeSandboxes(value: unknown): readonly Sandbox[] {
  return decode(sandboxesShape, value).sandboxes
}

export function decodeSessions(value: unknown): readonly Session[] {
  return decode(sessionsShape, value).sessions
}

const id = shape.text(128)
const role = shape.text(32)
const session = shape.optional(shape.nullable(id))
const MAX_GRANTS = 10_000

const madeShape = openRecord({
  grant: id,
  /** Absent when it was given to an account at once. */
  link: shape.optional(shape.text(2048)),
  role,
  expiresMs: shape.offset,
  notice: shape.optional(shape.text(1024)),
})
export type CreatedGrant = shape.Decoded<typeof madeShape>

const grantShape = openRecord({
  grant: id,
  session,
  role,
  label: shape.text(256),
  expiresMs: shape.offset,
  state: shape.text(32),
  name: shape.optional(shape.nullable(shape.text(256))),
})
export type Grant = shape.Decoded<typeof grantShape>

const heldFields = {
  grant: id,
  sandbox: id,
  sandboxName: shape.optional(shape.text(128)),
  session,
  role,
  owner: shape.text(256),
  expiresMs: shape.offset,
}
const heldShape = openRecord(heldFields)
/** A grant as its holder sees it. */
export type HeldGrant = shape.Decoded<typeof heldShape>

/** `token` is a guest's own credential. */
const redeemedShape = openRecord({
  ...heldFields,
  token: shape.optional(shape.text(4096, /^[\x21-\x7e]+$/)),
})
export type Redeemed = shape.Decoded<typeof redeemedShape>

const grantsShape = openRecord({ grants: shape.list(grantShape, MAX_GRANTS) })
const heldGrantsShape = openRecord({ grants: shape.list(heldShape, MAX_GRANTS) })

export function decodeCreatedGrant(value: unknown): CreatedGrant {
  return decodeResponse(madeShape, value)
}

export function decodeGrants(value: unknown): readonly Grant[] {
  return decodeResponse(grantsShape, value).grants
}

export function decodeHeldGrants(value: unknown): readonly HeldGrant[] {
  return decodeResponse(heldGrantsShape, value).grants
}

export function decodeRedeemed(value: unknown): Redeemed {
  return decodeResponse(redeemedShape, value)
}
