import type { Env } from '../env.ts'
import { runtimeOf } from '../runtime.ts'
import { type MessageApi, MessageSender, type MessageSenderDependencies } from './message-outbox.ts'

/** The API that the operator configured. */
function messageApiOf({
  API_BASE_URL: baseUrl = '',
  INTERNAL_API_TOKEN: token = '',
  UPSTREAMS,
}: Pick<Env, 'API_BASE_URL' | 'INTERNAL_API_TOKEN' | 'UPSTREAMS'>): MessageApi | undefined {
  if (baseUrl === '') return undefined
  return {
    baseUrl: baseUrl.replace(/\/+$/, ''),
    token,
    fetch: (url, init) => (UPSTREAMS === undefined ? fetch(url, init) : UPSTREAMS.fetch(url, init)),
  }
}

/** Sends messages of a conversation to the operator's API. */
export function openMessageSender(
  env: Env,
  deps: Pick<MessageSenderDependencies, 'outbox' | 'sessionId' | 'wakeBy'>,
): MessageSender {
  const { nowMs, sleep, log } = runtimeOf(env)
  return new MessageSender({ ...deps, api: messageApiOf(env), nowMs, sleep, log })
}
