import { ERRORS, formatRetryMessage, type SandwireError } from '@sandwire/protocol'
import { sendAndClose } from '../http/refuse-socket.ts'
import type { LiveFrame } from './frames.ts'

/** Route of conversations. */
export const CONVERSATION_PATH = '/ws/v2'

/** Refuses the socket of a conversation with an error frame. */
export function refuseConversation(error: SandwireError, requestId: string): Response {
  const { code } = error
  const frame: LiveFrame = { type: 'error', code, message: formatRetryMessage(error) }
  return sendAndClose(
    JSON.stringify(frame),
    { code: ERRORS[code].close, reason: code },
    { 'x-request-id': requestId },
  )
}
