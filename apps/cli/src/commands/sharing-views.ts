import { shape } from '@sandwire/protocol'
import { atLeast, decodeAnswer } from '../server/at-least.ts'

const id = shape.text(128)
const role = shape.text(32)
const session = shape.optional(shape.nullable(id))
const MAX_GRANTS = 10_000

const madeShape = atLeast({
  grant: id,
  /** Absent when it was given to an account at once. */
  link: shape.optional(shape.text(2048)),
  role,
  expiresMs: shape.offset,
  notice: shape.optional(shape.text(1024)),
})
export type MadeGrant = shape.Decoded<typeof madeShape>

const grantShape = atLeast({
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
const heldShape = atLeast(heldFields)
/** A grant as its holder sees it. */
export type HeldGrant = shape.Decoded<typeof heldShape>

/** `token` is a guest's own credential. */
const redeemedShape = atLeast({
  ...heldFields,
  token: shape.optional(shape.text(4096, /^[\x21-\x7e]+$/)),
})
export type Redeemed = shape.Decoded<typeof redeemedShape>

const grantsShape = atLeast({ grants: shape.list(grantShape, MAX_GRANTS) })
const heldGrantsShape = atLeast({ grants: shape.list(heldShape, MAX_GRANTS) })

export function decodeMadeGrant(value: unknown): MadeGrant {
  return decodeAnswer(madeShape, value)
}

export function decodeGrants(value: unknown): readonly Grant[] {
  return decodeAnswer(grantsShape, value).grants
}

export function decodeHeldGrants(value: unknown): readonly HeldGrant[] {
  return decodeAnswer(heldGrantsShape, value).grants
}

export function decodeRedeemed(value: unknown): Redeemed {
  return decodeAnswer(redeemedShape, value)
}
