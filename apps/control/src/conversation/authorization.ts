import { SandwireError } from '@sandwire/protocol'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import { type AgentNeed, authorizeAgent } from '../run/access.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import { noSuchConversation } from '../sandbox/not-found.ts'
import type { ConversationRecord } from './record.ts'
import type { SocketAttachment } from './sockets.ts'

/** Throws unless a caller may do this to a conversation. */
export function authorizeConversation(
  env: Env,
  record: ConversationRecord,
  call: SandboxCall,
  need: AgentNeed,
): Promise<void> {
  return authorizeAgent(env, record, call, { need, notFound: noSuchConversation })
}

/** Whether a caller that may watch may also send messages and answers. */
export async function maySteer(env: Env, record: ConversationRecord, call: SandboxCall): Promise<boolean> {
  try {
    await authorizeConversation(env, record, call, 'steer')
    return true
  } catch (error) {
    if (SandwireError.from(error).code === 'forbidden') return false
    throw error
  }
}

/** Access of a connected browser; undefined: it has none any more and is disconnected. */
export async function recheckSocket(
  env: Env,
  record: ConversationRecord,
  { call, hasStoredSignIn }: SocketAttachment,
): Promise<{ readonly maySteer: boolean } | undefined> {
  try {
    const account = env.ACCOUNT.get(env.ACCOUNT.idFromName(call.identity))
    if (call.login !== undefined && !unwrap(await account.acceptsConnection({ ...call, hasStoredSignIn })))
      return undefined
    await authorizeConversation(env, record, call, 'watch')
    return { maySteer: await maySteer(env, record, call) }
  } catch (error) {
    // A browser is not disconnected because an object does not respond.
    return SandwireError.from(error).info.retryable ? { maySteer: true } : undefined
  }
}
