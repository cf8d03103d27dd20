export * from './back-off.ts'
export { AckWindow, DEFAULT_WINDOW, type WindowBounds } from './ack-window.ts'
export * from './client-frames.ts'
export { type AttemptId, type ClientEffect, type ClientStatus } from './client/effects.ts'
export { type ClientOptions, ClientSession } from './client/client-session.ts'
export { type UnplacedMessage } from './client/send-log.ts'
export * from './codec.ts'
export * from './create-ledger.ts'
export * from './data-frame.ts'
export * from './errors.ts'
export * as limits from './limits.ts'
export * from './output-log.ts'
export * from './resize-log.ts'
export * from './server-frames.ts'
export { type Attachment, type Dialect } from './server/attachment.ts'
export { type LinkId, type Refusal, type ServerEffect } from './server/effects.ts'
export { type Snapshot } from './server/output-pump.ts'
export {
  type LinkRights,
  type ProcessExit,
  ServerSession,
  type SessionState,
  type StartParameters,
} from './server/server-session.ts'
export * from './server/session-options.ts'
export * from './signal-number.ts'
export * from './version.ts'
