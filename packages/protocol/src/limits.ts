/** Payload bytes of one data frame; small enough for proxies. */
export const MAX_DATA_BYTES = 64 * 1024
/** Bytes of input in one frame. Small, because only a complete frame proves that the peer is alive: 16 s at 1 KB/s. */
export const MAX_INPUT_FRAME_BYTES = 16 * 1024
/** Bytes of one inbound WebSocket message, control or data; larger ones end the connection. */
export const MAX_MESSAGE_BYTES = 1024 * 1024
/** Characters of one control message; hello carries the environment and is the largest. */
export const MAX_CONTROL_CHARS = 128 * 1024
/** Entries of the environment in hello. */
export const MAX_ENV_ENTRIES = 256
/** Characters of a variable's name. */
export const MAX_ENV_NAME_CHARS = 256
/** Characters of a variable's value. */
export const MAX_ENV_CHARS = 32 * 1024
/** Characters of the whole environment as JSON; the rest of a hello fits into what remains of a control message. */
export const MAX_ENV_TOTAL_CHARS = MAX_CONTROL_CHARS - 1024
/** Characters of an attachment's public label. */
export const MAX_NAME_CHARS = 64
/** Largest number of columns or rows of a terminal. */
export const MAX_CELLS = 4096
/** Output window a fresh attachment starts with; at 1 MB/s it drains in about 64 ms. */
export const START_WINDOW_BYTES = 64 * 1024
/** The window never shrinks below this, so that a very slow connection still makes progress. */
export const MIN_WINDOW_BYTES = 2 * 1024
/** The window never grows past this. */
export const MAX_WINDOW_BYTES = 1024 * 1024
/** Input bytes one attachment may have unsettled. */
export const INPUT_WINDOW_BYTES = 256 * 1024
/** Unsettled input bytes of a client without a window. */
export const PLAIN_INPUT_BYTES = 16 * 1024 * 1024
/** Output stored per session, for resuming and for late attachments. */
export const LOG_BYTES = 2 * 1024 * 1024
/** Output passed to the sockets of one session in one turn of the event loop. */
export const TURN_BYTES = 256 * 1024
/** Unsent output in the log before the process is paused. */
export const READ_AHEAD_BYTES = 64 * 1024
/** Output that a client without acknowledgements gets after its connection was full; beyond it, the screen. */
export const MAX_BACKLOG_BYTES = 64 * 1024
/** After a driver has disconnected: how long output is not trimmed and the lease is reserved. */
export const GRACE_MS = 30_000
/** A driver of a trimming session without ack progress for this long no longer pauses the process. */
export const STALL_MS = 30_000
/** Time for a new connection to send its hello. */
export const HELLO_MS = 10_000
/** Default time that a detached session is kept. */
export const KEEP_SECONDS = 60
/** Longest keep time that a client may request. */
export const MAX_KEEP_SECONDS = 7 * 24 * 3600
/** Longest lifetime and idle timeout of a session. */
export const MAX_SESSION_SECONDS = 365 * 24 * 3600
/** Interval of pings from an otherwise silent client. */
export const HEARTBEAT_MS = 15_000
/** Silence after which the server closes a connection; a little over three heartbeats. */
export const SILENCE_MS = 50_000
/** How long a client that must re-authenticate is waited for, even if the session is kept for less. */
export const REAUTHORIZE_WAIT_MS = 15_000
/** Attachments of one session, detached ones that may still resume included. */
export const MAX_ATTACHMENTS = 64
/** Inbound messages per second per connection, with a burst of twice that. */
export const MESSAGES_PER_SECOND = 5_000
/** Input frames from this size on do not count as messages: the window bounds them. */
export const RATE_EXEMPT_FRAME_BYTES = 4 * 1024
/** Lease messages per second per attachment, with a burst of twice that. */
export const LEASE_MESSAGES_PER_SECOND = 20
/** Minimum time between two presence messages to one attachment. */
export const PRESENCE_MS = 50
/** Characters of an error message; longer ones are truncated. */
export const MAX_ERROR_CHARS = 2048
/** Longest delay of an ack for a small amount of input or output. */
export const ACK_DELAY_MS = 10
/** Consumed bytes that are acknowledged at once. */
export const ACK_BYTES = 16 * 1024
/** While full frames are received: minimum time between acks of less than `FLOOD_ACK_BYTES`. */
export const FLOOD_ACK_MS = 1
/** Consumed bytes that are acknowledged at once while full frames are received: four of them, which always fit into the window. */
export const FLOOD_ACK_BYTES = 4 * MAX_DATA_BYTES
/** Input that a client queues for a process that does not read; beyond it `write` waits. */
export const CLIENT_INPUT_BYTES = 1024 * 1024
/** Scrollback lines that are stored for later attachments. */
export const SCROLLBACK_LINES = 2_000
/** Bytes of scrollback in a snapshot. */
export const MAX_SNAPSHOT_BYTES = 512 * 1024
/** Resizes stored per session. */
export const MAX_RESIZES = 256
/** Create ids remembered after their session has ended. */
export const MAX_TOMBSTONES = 16_384
