/** Bytes of payload in one data frame; relays on the way stay comfortable with it. */
export const MAX_DATA_BYTES = 64 * 1024
/** Bytes of input in one frame. Small, because a frame is a sign of life only once it is whole: 16 s at 1 KB/s. */
export const MAX_INPUT_FRAME_BYTES = 16 * 1024
/** Bytes of one inbound WebSocket message, control or data; larger ones end the connection. */
export const MAX_MESSAGE_BYTES = 1024 * 1024
/** Characters of one control message; hello carries the environment and is the largest. */
export const MAX_CONTROL_CHARS = 128 * 1024
/** Entries of the environment in hello. */
export const MAX_ENV_ENTRIES = 256
/** Characters of the name of one of them. */
export const MAX_ENV_NAME_CHARS = 256
/** Characters of the value of one of them. */
export const MAX_ENV_CHARS = 32 * 1024
/** Characters of the whole environment, as JSON: the rest of a hello needs less than what is left. */
export const MAX_ENV_TOTAL_CHARS = MAX_CONTROL_CHARS - 1024
/** Characters of the label an attachment shows to the others. */
export const MAX_NAME_CHARS = 64
/** Largest terminal dimension a program can be told. */
export const MAX_CELLS = 4096
/** Output window a fresh attachment starts with; at 1 MB/s it drains in about 64 ms. */
export const START_WINDOW_BYTES = 64 * 1024
/** The window never shrinks below this, so a very slow link still makes progress. */
export const MIN_WINDOW_BYTES = 2 * 1024
/** The window never grows past this. */
export const MAX_WINDOW_BYTES = 1024 * 1024
/** Input bytes one attachment may have unsettled. */
export const INPUT_WINDOW_BYTES = 256 * 1024
/** Input bytes of a plain client, which knows no credit, that may be unsettled. */
export const PLAIN_INPUT_BYTES = 16 * 1024 * 1024
/** Output kept per session for resume and late attachers. */
export const LOG_BYTES = 2 * 1024 * 1024
/** Output handed to sockets for one session in one turn of the event loop. */
export const TURN_BYTES = 256 * 1024
/** Output that may wait in the log for its turn or its connection before reading from the process stops. */
export const AHEAD_BYTES = 64 * 1024
/** After a cut, how long a session blocks rather than trims, and a lease is reserved. */
export const GRACE_MS = 30_000
/** A driver of a trimming session without ack progress for this long no longer holds the program back. */
export const STALL_MS = 30_000
/** How long a fresh connection may take to say hello. */
export const HELLO_MS = 10_000
/** How long a detached session lives unless told otherwise. */
export const KEEP_SECONDS = 60
/** Longest keep a client may ask for. */
export const MAX_KEEP_SECONDS = 7 * 24 * 3600
/** How often an otherwise silent client proves it is there. */
export const HEARTBEAT_MS = 15_000
/** Silence after which the server takes a connection for dead; three heartbeats and a bit. */
export const SILENCE_MS = 50_000
/** How long a client that was asked to show its right again is waited for, also where the session is kept for less. */
export const AWAITED_MS = 15_000
/** Attachments of one session, detached ones that may still resume included. */
export const MAX_ATTACHMENTS = 64
/** Inbound messages per second per connection, over a burst of twice that. */
export const MESSAGES_PER_SECOND = 5_000
/** Input in frames of this size and more is bounded by its window, not by the rate of messages: a fast upload is no flood. */
export const BULK_BYTES = 4 * 1024
/** Changes and wishes of the lease per second per attachment, over a burst of twice that. */
export const LEASE_MOVES_PER_SECOND = 20
/** Least time between two presence messages to one attachment; the later one tells the newest state. */
export const PRESENCE_MS = 50
/** Characters of the text in an error message; longer ones are cut. */
export const MAX_ERROR_CHARS = 2048
/** How long a small settled input or consumed output may wait for its ack. */
export const ACK_DELAY_MS = 10
/** Consumed output that is acknowledged at once. */
export const ACK_BYTES = 16 * 1024
/** In a flood, which comes in full frames: least time between acks of less than `FLOOD_ACK_BYTES`. */
export const FLOOD_ACK_MS = 1
/** Consumed output that is acknowledged at once in a flood: four full frames. The window is at least that, and soon four times. */
export const FLOOD_ACK_BYTES = 4 * MAX_DATA_BYTES
/** Input a client holds for a process that does not take it; beyond, `write` waits. */
export const CLIENT_INPUT_BYTES = 1024 * 1024
/** Lines above a terminal's screen that are kept for who attaches later. */
export const SCROLLBACK_LINES = 2_000
/** Of the lines above a rendered screen as many are sent as fit into this. */
export const MAX_SNAPSHOT_BYTES = 512 * 1024
/** Recorded resizes kept per session. */
export const MAX_RESIZES = 256
/** Create ids remembered after their session is gone. */
export const MAX_TOMBSTONES = 16_384
