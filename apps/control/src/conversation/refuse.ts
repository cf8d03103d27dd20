import { ERRORS, formatRetryMessage, isErrorCode, SandwireError } from '@sandwire/protocol'
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

/** The error of a frame that refuses something. */
export function refusalOf(frame: LiveFrame | undefined): SandwireError {
  if (frame?.type !== 'error') return new SandwireError('internal', '')
  return new SandwireError(isErrorCode(frame.code) ? frame.code : 'bad_request', frame.message)
}
