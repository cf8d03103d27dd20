export { attach } from './attach.ts'
export type { AttachHandle, AttachOptions, Screen, SessionDetails } from './attach-options.ts'
export { type AttachRequest, attachUrl } from './attach-url.ts'
export { explainRefusal, type RefusalReason } from './refusal.ts'
export {
  type OpenSocket,
  openWebSocket,
  type Socket,
  type SocketEvents,
  type SocketRequest,
} from './socket.ts'
export { createStore, type Store } from './store.ts'
export { withoutTerminalReplies } from './terminal-replies.ts'
