export * from './back-off.ts'
export { AckWindow, DEFAULT_WINDOW, type WindowBounds } from './ack-window.ts'
export * from './client-frames.ts'
export { type AttemptId, type ClientEffect, type ClientStatus } from './client/effects.ts'
export { type ClientOptions, ClientSession } from './client/client-session.ts'
export { type UnplacedMessage } from './client/send-log.ts'
export * from './codec.ts'
export * from './create-ledger.ts'
export * from './data-frame.ts'
export { checkSubprotocols, dialectOf } from './dialect.ts'
export {
  ENVELOPE_SUBPROTOCOL,
  encodePty,
  type EnvelopeEnd,
  envelopeEnd,
  envelopeEndOf,
  type PtyServerMessage,
} from './envelope.ts'
export * from './errors.ts'
export * as limits from './limits.ts'
export * from './output-log.ts'
export { bytesOfPath, decodePath, encodePath, textOfPath } from './path-text.ts'
export * from './resize-log.ts'
export * from './retry-after.ts'
export * from './server-frames.ts'
export * as shape from './shape.ts'
export { type Attachment, type Dialect, knowsNoWindow } from './server/attachment.ts'
export { type LinkId, type Refusal, type ServerEffect } from './server/effects.ts'
export { type Snapshot } from './server/output-pump.ts'
export { type StartParameters } from './server/greeting.ts'
export { type LinkRights } from './server/link-table.ts'
export { type WhichAttachments } from './server/revocation.ts'
export { ServerSession } from './server/server-session.ts'
export { type ProcessExit, type SessionState } from './server/session-life.ts'
export * from './server/session-options.ts'
export * from './signal-number.ts'
export * as tar from './tar/index.ts'
export { TokenBucket } from './token-bucket.ts'
export * from './version.ts'
