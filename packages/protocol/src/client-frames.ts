import {
  MAX_CONTROL_CHARS,
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
  integer,
} from './schema.ts'

/** Roles, from least to most rights. */
export const ROLES = ['viewer', 'collaborator', 'driver'] as const
export type Role = (typeof ROLES)[number]

const cells = integer(1, MAX_CELLS)
const signalName = text(16, /^SIG[A-Z0-9]+$/)

/** Position of a control message: its sequence number, and the input offset it follows. */
const position = { seq: integer(1, Number.MAX_SAFE_INTEGER), at: offset }

/** Labels are shown to other users, so they contain no control characters or direction overrides. */
const label = text(MAX_NAME_CHARS, /^[^\p{C}\p{Zl}\p{Zp}]*$/u)

const envName = new RegExp(`^[A-Za-z_][A-Za-z0-9_]{0,${MAX_ENV_NAME_CHARS - 1}}$`)

const resize = record({ type: literal('resize'), cols: cells, rows: cells })
const signal = record({ type: literal('signal'), signal: signalName })
const eof = record({ type: literal('eof') })
/** Input for another pane of the same tmux window: `%3`, a title, or `left`, `right`, `up`, `down`. */
const stdin = record({ type: literal('stdin'), pane: text(256), data: text(MAX_CONTROL_CHARS) })

/** Text messages of a plain client. */
export const plainClientMessage = tagged({ resize, signal, eof, stdin })
export type PlainClientMessage = Decoded<typeof plainClientMessage>

/** Text messages of a `sandwire.v1` client. */
export const clientMessage = tagged({
  /** First frame of a connection: identifies the attachment and says what it has received. */
  hello: record({
    type: literal('hello'),
    version: integer(1, 1000),
    /** Secret of the attachment, chosen by the client; sending it again resumes the attachment. */
    identity: text(32, /^[0-9a-f]{32}$/),
    /** Number of the attachment's connection, so that a late hello cannot replace a newer connection. */
    attempt: optional(integer(1, Number.MAX_SAFE_INTEGER)),
    /** True once a welcome has been received: the server must then know the identity. */
    resuming: bool,
    /** Output bytes received so far. */
    received: offset,
    /** Most output bytes the client wants in flight. */
    window: integer(1, MAX_WINDOW_BYTES),
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
  resize: record({ type: literal('resize'), ...position, cols: cells, rows: cells }),
  signal: record({ type: literal('signal'), ...position, signal: signalName }),
  eof: record({ type: literal('eof'), ...position }),
  ping: record({ type: literal('ping'), id: offset }),
  /** Takes the driver's lease. */
  take: record({ type: literal('take') }),
  /** Asks the driver to give the lease. */
  ask: record({ type: literal('ask') }),
  /** Gives the lease to another attachment. */
  give: record({ type: literal('give'), to: text(16, /^a[0-9]+$/) }),
  /** Begins or ends private input: meanwhile attachments of agents get no output and cannot type. */
  private: record({ type: literal('private'), on: bool }),
  /** The client has seen the role change of this epoch and sends no more input from before it. */
  roleSeen: record({ type: literal('roleSeen'), epoch: offset }),
  /** The client detaches: its lease is free at once. */
  detach: record({ type: literal('detach') }),
})
export type ClientMessage = Decoded<typeof clientMessage>
export type Hello = Extract<ClientMessage, { type: 'hello' }>
