import { ROLES } from './client-frames.ts'
import { MAX_ATTACHMENTS, MAX_CELLS, MAX_ERROR_CHARS, MAX_NAME_CHARS, MAX_SNAPSHOT_BYTES } from './limits.ts'
import {
  bool,
  type Decoded,
  list,
  literal,
  nullable,
  offset,
  oneOf,
  optional,
  record,
  tagged,
  text,
  integer,
} from './schema.ts'

const cells = integer(1, MAX_CELLS)
const role = oneOf(ROLES)
const attachmentId = text(16, /^a[0-9]+$/)
const errorText = { code: text(64, /^[a-z_0-9]+$/), message: text(MAX_ERROR_CHARS) }

/** Position up to which the server has accepted an attachment's input. */
const inputPosition = record({ at: offset, seq: offset })

const MAX_SNAPSHOT_PARTS = 16

/** A part of a snapshot's bytes. */
const snapshotPart = record({
  kind: oneOf([
    /** Rows with their scrollback, separated by CRLF; a row may wrap into the next one. */
    'rows',
    /** State of the screen that is not shown; may be omitted. */
    'hidden',
    'tabs',
    /** Margins, origin mode or a restored cursor, which depend on the screen's rows. */
    'margins',
    /** Moves the cursor to `row` and `column`, counted from 0. */
    'cursor',
    /** Modes, styles and characters at the cursor, which do not move it to another row. */
    'state',
    /** Switches to the alternate screen, whose rows follow. */
    'alternate',
  ]),
  bytes: integer(0, MAX_SNAPSHOT_BYTES),
  row: optional(integer(0, MAX_CELLS)),
  column: optional(integer(0, MAX_CELLS)),
})
export type SnapshotPart = Decoded<typeof snapshotPart>

/** Text messages to a plain client. */
export const plainServerMessage = tagged({
  /** `code` is 128 + n for a process killed by signal n, which `signal` then names. */
  exit: record({ type: literal('exit'), code: integer(0, 255), signal: optional(text(16)) }),
  error: record({ type: literal('error'), ...errorText }),
})
export type PlainServerMessage = Decoded<typeof plainServerMessage>

/** Text messages to a `sandwire.v1` client. */
export const serverMessage = tagged({
  /** Response to hello: where both streams continue. */
  welcome: record({
    type: literal('welcome'),
    version: integer(1, 1000),
    session: text(128),
    /** Public name of this attachment. */
    attachment: attachmentId,
    role,
    /** The highest role this connection may have. */
    authority: role,
    epoch: offset,
    mode: oneOf(['pipe', 'pty']),
    /** Offset of the next output byte, unless a gap or snapshot precedes it. */
    output: offset,
    /** Input already accepted from this attachment. */
    input: inputPosition,
    /** Input bytes that may be unsettled. */
    inputWindow: integer(1, Number.MAX_SAFE_INTEGER),
    keepSeconds: integer(0, Number.MAX_SAFE_INTEGER),
    cols: cells,
    rows: cells,
  }),
  /** Input up to `input` was written to the process; control messages up to `seq` were applied. */
  ack: record({ type: literal('ack'), input: offset, seq: offset }),
  /** Output from..to is no longer available; the stream continues at `to`. Terminals get a snapshot instead. */
  gap: record({ type: literal('gap'), from: offset, to: offset }),
  /**
   * The screen at offset `at`, as `bytes` bytes in snapshot data frames; the stream continues at `at`.
   * Output between the last byte received and `at` is no longer available.
   */
  snapshot: record({
    type: literal('snapshot'),
    at: offset,
    cols: cells,
    rows: cells,
    bytes: integer(0, MAX_SNAPSHOT_BYTES),
    /** False when output was trimmed before it could be rendered; the program was asked to repaint. */
    exact: bool,
    /** Consecutive parts of the bytes, for drawing in a smaller window; bytes after the last part are an incomplete sequence. */
    parts: optional(list(snapshotPart, MAX_SNAPSHOT_PARTS)),
  }),
  /** The terminal has this size from offset `at` on. */
  resized: record({ type: literal('resized'), at: offset, cols: cells, rows: cells }),
  /** The process does not read input from offset `at` on. */
  stdinClosed: record({ type: literal('stdinClosed'), at: offset }),
  /** The process ended, and `outputEnd` is the end of its output. */
  exit: record({
    type: literal('exit'),
    code: nullable(integer(0, 255)),
    signal: nullable(text(16)),
    outputEnd: offset,
    truncated: bool,
  }),
  error: record({
    type: literal('error'),
    ...errorText,
    fatal: bool,
    /** With `shutting_down`: a `StopReason`, when the server knows it. */
    reason: optional(text(32, /^[a-z_0-9]+$/)),
  }),
  /** This attachment's role changed; input beyond `input` was refused. */
  role: record({ type: literal('role'), role, epoch: offset, input: inputPosition }),
  /** The attachments and the driver. */
  presence: record({
    type: literal('presence'),
    driver: nullable(attachmentId),
    attachments: list(
      record({
        id: attachmentId,
        role,
        name: text(MAX_NAME_CHARS),
        connected: bool,
        /** Present for coding agents. */
        agent: optional(literal(true)),
      }),
      MAX_ATTACHMENTS,
    ),
    /** The attachment that began private input; null: input is not private. */
    private: nullable(attachmentId),
  }),
  /** An attachment asks the driver to give the lease. */
  asked: record({ type: literal('asked'), by: attachmentId }),
  pong: record({ type: literal('pong'), id: offset }),
})
export type ServerMessage = Decoded<typeof serverMessage>
export type Welcome = Extract<ServerMessage, { type: 'welcome' }>
export type Exit = Extract<ServerMessage, { type: 'exit' }>
