import { shape } from '@sandwire/protocol'
import { decodeResponse, looseObject } from '../server/response.ts'

const shortText = shape.text(64)
const optionalMs = shape.optional(shape.nullable(shape.nonNegativeInteger))

const sandboxShape = looseObject({
  id: shape.text(64),
  name: shape.text(128),
  /** Any text: a newer server may have more states. */
  state: shortText,
  reason: shape.optional(shape.nullable(shape.text(256))),
  createdMs: shape.nonNegativeInteger,
  lastActivityMs: optionalMs,
  ephemeral: shape.optional(shape.bool),
  isolation: shape.optional(shape.nullable(shortText)),
  /** Null where files are not saved. */
  saved: shape.optional(
    shape.nullable(
      looseObject({
        state: shortText,
        savedMs: shape.nullable(shape.nonNegativeInteger),
        error: shape.nullable(shortText),
      }),
    ),
  ),
  /** The owner, if it is another account. */
  owner: shape.optional(shape.text(256)),
  network: shape.optional(looseObject({ policy: shortText, allow: shape.list(shape.text(253), 1_000) })),
})
export type Sandbox = shape.Decoded<typeof sandboxShape>

const sessionShape = looseObject({
  id: shape.text(128),
  sandbox: shape.text(128),
  sandboxName: shape.optional(shape.text(128)),
  state: shortText,
  mode: shape.optional(shortText),
  cmd: shape.text(64 * 1024),
  attachments: shape.nonNegativeInteger,
  createdMs: optionalMs,
  lastInputMs: optionalMs,
  lastOutputMs: optionalMs,
  exit: shape.optional(
    shape.nullable(
      looseObject({
        // The range of the server's schema; processes on Linux exit with 0 to 255.
        code: shape.nullable(shape.integer(-1, 0xffff_ffff)),
        signal: shape.nullable(shortText),
      }),
    ),
  ),
})
export type Session = shape.Decoded<typeof sessionShape>

const MAX_ITEMS = 100_000
const sandboxesShape = looseObject({ sandboxes: shape.list(sandboxShape, MAX_ITEMS) })
const sessionsShape = looseObject({ sessions: shape.list(sessionShape, MAX_ITEMS) })

export function decodeSandbox(value: unknown): Sandbox {
  return decodeResponse(sandboxShape, value)
}

export function decodeSandboxes(value: unknown): readonly Sandbox[] {
  return decodeResponse(sandboxesShape, value).sandboxes
}

export function decodeSessions(value: unknown): readonly Session[] {
  return decodeResponse(sessionsShape, value).sessions
}

const id = shape.text(128)
const role = shape.text(32)
const session = shape.optional(shape.nullable(id))
const MAX_GRANTS = 10_000

const createdGrantShape = looseObject({
  grant: id,
  /** Absent when the grant was given to an account directly. */
  link: shape.optional(shape.text(2048)),
  role,
  expiresMs: shape.nonNegativeInteger,
  notice: shape.optional(shape.text(1024)),
})
export type CreatedGrant = shape.Decoded<typeof createdGrantShape>

const grantShape = looseObject({
  grant: id,
  session,
  role,
  label: shape.text(256),
  expiresMs: shape.nonNegativeInteger,
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
  expiresMs: shape.nonNegativeInteger,
}
const heldGrantShape = looseObject(heldFields)
/** A grant as its holder sees it. */
export type HeldGrant = shape.Decoded<typeof heldGrantShape>

/** `token` is the credential of a new guest. */
const redeemedGrantShape = looseObject({
  ...heldFields,
  token: shape.optional(shape.text(4096, /^[\x21-\x7e]+$/)),
})
export type RedeemedGrant = shape.Decoded<typeof redeemedGrantShape>

const grantsShape = looseObject({ grants: shape.list(grantShape, MAX_GRANTS) })
const heldGrantsShape = looseObject({ grants: shape.list(heldGrantShape, MAX_GRANTS) })

export function decodeCreatedGrant(value: unknown): CreatedGrant {
  return decodeResponse(createdGrantShape, value)
}

export function decodeGrants(value: unknown): readonly Grant[] {
  return decodeResponse(grantsShape, value).grants
}

export function decodeHeldGrants(value: unknown): readonly HeldGrant[] {
  return decodeResponse(heldGrantsShape, value).grants
}

export function decodeRedeemedGrant(value: unknown): RedeemedGrant {
  return decodeResponse(redeemedGrantShape, value)
}

const versionShape = looseObject({
  version: shape.nonNegativeInteger,
  name: shape.nullable(shape.text(63)),
  kind: shortText,
  savedMs: shape.nonNegativeInteger,
  isNewest: shape.bool,
  isFuzzy: shape.bool,
  unreadable: shape.nonNegativeInteger,
  addedBytes: shape.optional(shape.nonNegativeInteger),
})
/** A saved version of a sandbox's files. */
export type Version = shape.Decoded<typeof versionShape>

const versionsShape = looseObject({
  versions: shape.list(versionShape, MAX_ITEMS),
  retention: looseObject({
    automaticVersions: shape.nonNegativeInteger,
    checkpointDays: shape.nullable(shape.nonNegativeInteger),
  }),
  storedBytes: shape.nonNegativeInteger,
})
export type VersionList = shape.Decoded<typeof versionsShape>

export function decodeVersion(value: unknown): Version {
  return decodeResponse(versionShape, value)
}

export function decodeVersions(value: unknown): VersionList {
  return decodeResponse(versionsShape, value)
}

const versionDiffShape = looseObject({
  changes: shape.list(
    looseObject({
      path: shape.text(64 * 1024),
      change: shortText,
      kind: shortText,
      beforeBytes: shape.nullable(shape.nonNegativeInteger),
      afterBytes: shape.nullable(shape.nonNegativeInteger),
    }),
    MAX_ITEMS,
  ),
  isComplete: shape.bool,
})

/** What differs between two versions. */
export function decodeVersionDiff(value: unknown): shape.Decoded<typeof versionDiffShape> {
  return decodeResponse(versionDiffShape, value)
}

const tmuxPaneShape = looseObject({
  id: shape.text(16),
  title: shape.text(1024),
  command: shape.text(256),
  isActive: shape.bool,
})
const tmuxWindowShape = looseObject({
  id: shape.text(16),
  index: shape.nonNegativeInteger,
  name: shape.text(1024),
  isActive: shape.bool,
  layout: looseObject({ cols: shape.nonNegativeInteger, rows: shape.nonNegativeInteger }),
  panes: shape.list(tmuxPaneShape, 1_000),
})
const tmuxShape = looseObject({
  /** `running`, `stopped` or `missing`. */
  state: shortText,
  windows: shape.optional(shape.list(tmuxWindowShape, 1_000)),
})
export type Tmux = shape.Decoded<typeof tmuxShape>
const tmuxChangeShape = looseObject({ pane: shape.optional(shape.text(16)) })

export function decodeTmux(value: unknown): Tmux {
  return decodeResponse(tmuxShape, value)
}

/** The pane that an action made. */
export function decodeMadePane(value: unknown): string | undefined {
  return decodeResponse(tmuxChangeShape, value).pane
}
