import { z } from 'zod'
import { CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import { callFields } from '../sandbox/pass-through.ts'

/** URL at which a conversation's object accepts the socket of a browser. */
export const CONVERSATION_URL = 'http://conversation/socket'

/** The upgrade of a browser, on its way from the Worker to the object. */
export interface ConversationCall extends SandboxCall {
  /** The last entry that the browser has. */
  readonly after: number
  /** False: the credential only allows watching. */
  readonly maySteer: boolean
}

const callSchema = z.object({ ...callFields, after: z.number(), maySteer: z.boolean() })

export function parseConversationCall(headers: Headers): ConversationCall {
  return callSchema.parse(JSON.parse(headers.get(CALL_HEADER) ?? ''))
}
