import {
  MAX_CELLS,
  MAX_ENV_CHARS,
  MAX_ENV_ENTRIES,
  MAX_ENV_NAME_CHARS,
  MAX_NAME_CHARS,
  MAX_WINDOW_BYTES,
} from './limits.ts'
import {
  bool,
  type Decoded,
  dictionary,
  literal,
  offset,
  oneOf,
  optional,
  record,
  tagged,
  text,
  whole,
} from './shape.ts'

/** What an attachment may do, from least to most. */
export const ROLES = ['viewer', 'collaborator', 'driver'] as const
export type Role = (typeof ROLES)[number]

const cells = whole(1, MAX_CELLS)
const signalName = text(16, /^SIG[A-Z0-9]+$/)

/** Place of a control message: its number among the attachment's control messages, and the input offset it follows. */
const placed = { seq: whole(1, Number.MAX_SAFE_INTEGER), at: offset }

/** Names and labels are shown to other people, so they are printable and carry no direction overrides. */
const label = text(MAX_NAME_CHARS, /^[^\p{C}\p{Zl}\p{Zp}]*$/u)

const envName = new RegExp(`^[A-Za-z_][A-Za-z0-9_]{0,${MAX_ENV_NAME_CHARS - 1}}$`)

const resize = record({ type: literal('resize'), cols: cells, rows: cells })
const signal = record({ type: literal('signal'), signal: signalName })
const eof = record({ type: literal('eof') })

/** Text messages of a plain client. */
export const plainClientMessage = tagged({ resize, signal, eof })
export type PlainClientMessage = Decoded<typeof plainClientMessage>

/** Text messages of a `sandwire.v1` client. */
export const clientMessage = tagged({
  /** First frame of a connection: who this attachment is and what it already holds. */
  hello: record({
    type: literal('hello'),
    version: whole(1, 1000),
    /** Secret of the attachment, minted by the client; presenting it again is how it resumes. */
    identity: text(32, /^[0-9a-f]{32}$/),
    /** Counts the attachment's connections: with it, a hello that is late cannot replace a newer connection. */
    attempt: optional(whole(1, Number.MAX_SAFE_INTEGER)),
    /** True once a welcome has been received: the server must then know the identity. */
    resuming: bool,
    /** Output bytes received so far. */
    received: offset,
    /** Most output bytes the client wants in flight. */
    window: whole(1, MAX_WINDOW_BYTES),
    cols: cells,
    rows: cells,
    /** Narrows the role that the connection was authorized for. */
    role: optional(oneOf(ROLES)),
    name: optional(label),
    /** Environment for a process that this hello starts. */
    env: optional(dictionary(MAX_ENV_ENTRIES, envName, text(MAX_ENV_CHARS, /^[^\0]*$/))),
  }),
  /** Output up to this offset has been consumed. */
  ack: record({ type: literal('ack'), output: offset }),
  resize: record({ type: literal('resize'), ...placed, cols: cells, rows: cells }),
  signal: record({ type: literal('signal'), ...placed, signal: signalName }),
  eof: record({ type: literal('eof'), ...placed }),
  ping: record({ type: literal('ping'), id: offset }),
  /** Takes the driver's lease. */
  take: record({ type: literal('take') }),
  /** Asks whoever drives to hand over. */
  ask: record({ type: literal('ask') }),
  /** Hands the lease to another attachment. */
  give: record({ type: literal('give'), to: text(16, /^a[0-9]+$/) }),
  /** The client has seen the role change of this epoch and will not write from an older one. */
  roleSeen: record({ type: literal('roleSeen'), epoch: offset }),
  /** The client leaves on purpose: its lease is free at once. */
  detach: record({ type: literal('detach') }),
})
export type ClientMessage = Decoded<typeof clientMessage>
export type Hello = Extract<ClientMessage, { type: 'hello' }>
