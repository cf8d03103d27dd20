import { schema } from '@sandwire/protocol'
import { decodeResponse, looseObject } from '../server/response.ts'

const shortText = schema.text(64)
const optionalMs = schema.optional(schema.nullable(schema.nonNegativeInteger))

const sandboxSchema = looseObject({
  id: schema.text(64),
  name: schema.text(128),
  /** Any text: a newer server may have more states. */
  state: shortText,
  reason: schema.optional(schema.nullable(schema.text(256))),
  createdMs: schema.nonNegativeInteger,
  lastActivityMs: optionalMs,
  ephemeral: schema.optional(schema.bool),
  isolation: schema.optional(schema.nullable(shortText)),
  /** Null where files are not saved. */
  saved: schema.optional(
    schema.nullable(
      looseObject({
        state: shortText,
        savedMs: schema.nullable(schema.nonNegativeInteger),
        error: schema.nullable(shortText),
      }),
    ),
  ),
  /** The owner, if it is another account. */
  owner: schema.optional(schema.text(256)),
  network: schema.optional(looseObject({ policy: shortText, allow: schema.list(schema.text(253), 1_000) })),
})
export type Sandbox = schema.Decoded<typeof sandboxSchema>

const sessionSchema = looseObject({
  id: schema.text(128),
  sandbox: schema.text(128),
  sandboxName: schema.optional(schema.text(128)),
  state: shortText,
  mode: schema.optional(shortText),
  cmd: schema.text(64 * 1024),
  attachments: schema.nonNegativeInteger,
  createdMs: optionalMs,
  lastInputMs: optionalMs,
  lastOutputMs: optionalMs,
  exit: schema.optional(
    schema.nullable(
      looseObject({
        // The range of the server's schema; processes on Linux exit with 0 to 255.
        code: schema.nullable(schema.integer(-1, 0xffff_ffff)),
        signal: schema.nullable(shortText),
      }),
    ),
  ),
})
export type Session = schema.Decoded<typeof sessionSchema>

const MAX_ITEMS = 100_000
const sandboxesSchema = looseObject({ sandboxes: schema.list(sandboxSchema, MAX_ITEMS) })
const sessionsSchema = looseObject({ sessions: schema.list(sessionSchema, MAX_ITEMS) })

export function decodeSandbox(value: unknown): Sandbox {
  return decodeResponse(sandboxSchema, value)
}

export function decodeSandboxes(value: unknown): readonly Sandbox[] {
  return decodeResponse(sandboxesSchema, value).sandboxes
}

export function decodeSessions(value: unknown): readonly Session[] {
  return decodeResponse(sessionsSchema, value).sessions
}

const id = schema.text(128)
const role = schema.text(32)
const session = schema.optional(schema.nullable(id))
const MAX_GRANTS = 10_000

const createdGrantSchema = looseObject({
  grant: id,
  /** Absent when the grant was given to an account directly. */
  link: schema.optional(schema.text(2048)),
  role,
  expiresMs: schema.nonNegativeInteger,
  notice: schema.optional(schema.text(1024)),
})
export type CreatedGrant = schema.Decoded<typeof createdGrantSchema>

const grantSchema = looseObject({
  grant: id,
  session,
  role,
  label: schema.text(256),
  expiresMs: schema.nonNegativeInteger,
  state: schema.text(32),
  name: schema.optional(schema.nullable(schema.text(256))),
})
export type Grant = schema.Decoded<typeof grantSchema>

const heldFields = {
  grant: id,
  sandbox: id,
  sandboxName: schema.optional(schema.text(128)),
  session,
  role,
  owner: schema.text(256),
  expiresMs: schema.nonNegativeInteger,
}
const heldGrantSchema = looseObject(heldFields)
/** A grant as its holder sees it. */
export type HeldGrant = schema.Decoded<typeof heldGrantSchema>

/** `token` is the credential of a new guest. */
const redeemedGrantSchema = looseObject({
  ...heldFields,
  token: schema.optional(schema.text(4096, /^[\x21-\x7e]+$/)),
})
export type RedeemedGrant = schema.Decoded<typeof redeemedGrantSchema>

const grantsSchema = looseObject({ grants: schema.list(grantSchema, MAX_GRANTS) })
const heldGrantsSchema = looseObject({ grants: schema.list(heldGrantSchema, MAX_GRANTS) })

export function decodeCreatedGrant(value: unknown): CreatedGrant {
  return decodeResponse(createdGrantSchema, value)
}

export function decodeGrants(value: unknown): readonly Grant[] {
  return decodeResponse(grantsSchema, value).grants
}

export function decodeHeldGrants(value: unknown): readonly HeldGrant[] {
  return decodeResponse(heldGrantsSchema, value).grants
}

export function decodeRedeemedGrant(value: unknown): RedeemedGrant {
  return decodeResponse(redeemedGrantSchema, value)
}

const versionSchema = looseObject({
  version: schema.nonNegativeInteger,
  name: schema.nullable(schema.text(63)),
  kind: shortText,
  savedMs: schema.nonNegativeInteger,
  isNewest: schema.bool,
  isFuzzy: schema.bool,
  unreadable: schema.nonNegativeInteger,
  addedBytes: schema.optional(schema.nonNegativeInteger),
})
/** A saved version of a sandbox's files. */
export type Version = schema.Decoded<typeof versionSchema>

const versionsSchema = looseObject({
  versions: schema.list(versionSchema, MAX_ITEMS),
  retention: looseObject({
    automaticVersions: schema.nonNegativeInteger,
    checkpointDays: schema.nullable(schema.nonNegativeInteger),
  }),
  storedBytes: schema.nonNegativeInteger,
})
export type VersionList = schema.Decoded<typeof versionsSchema>

export function decodeVersion(value: unknown): Version {
  return decodeResponse(versionSchema, value)
}

export function decodeVersions(value: unknown): VersionList {
  return decodeResponse(versionsSchema, value)
}

const versionDiffSchema = looseObject({
  changes: schema.list(
    looseObject({
      path: schema.text(64 * 1024),
      change: shortText,
      kind: shortText,
      beforeBytes: schema.nullable(schema.nonNegativeInteger),
      afterBytes: schema.nullable(schema.nonNegativeInteger),
    }),
    MAX_ITEMS,
  ),
  isComplete: schema.bool,
})

/** What differs between two versions. */
export function decodeVersionDiff(value: unknown): schema.Decoded<typeof versionDiffSchema> {
  return decodeResponse(versionDiffSchema, value)
}

const tmuxPaneSchema = looseObject({
  id: schema.text(16),
  title: schema.text(1024),
  command: schema.text(256),
  isActive: schema.bool,
})
const tmuxWindowSchema = looseObject({
  id: schema.text(16),
  index: schema.nonNegativeInteger,
  name: schema.text(1024),
  isActive: schema.bool,
  layout: looseObject({ cols: schema.nonNegativeInteger, rows: schema.nonNegativeInteger }),
  panes: schema.list(tmuxPaneSchema, 1_000),
})
const tmuxSchema = looseObject({
  /** `running`, `stopped` or `missing`. */
  state: shortText,
  windows: schema.optional(schema.list(tmuxWindowSchema, 1_000)),
})
export type Tmux = schema.Decoded<typeof tmuxSchema>
const tmuxChangeSchema = looseObject({ pane: schema.optional(schema.text(16)) })

export function decodeTmux(value: unknown): Tmux {
  return decodeResponse(tmuxSchema, value)
}

/** The pane that an action made. */
export function decodeMadePane(value: unknown): string | undefined {
  return decodeResponse(tmuxChangeSchema, value).pane
}
