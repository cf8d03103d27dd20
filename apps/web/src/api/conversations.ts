import { listHeldGrants } from './grants.ts'
import type { Publication, PublishableChange, Published } from './publish.ts'
import { ApiError, request, requestJson } from './request.ts'
import { startSandbox } from './sandboxes.ts'

/** What the agent of a conversation is doing. `idle`: it takes a message. */
export type Activity = 'new' | 'idle' | 'starting' | 'working' | 'awaiting' | 'restoring'

/** A coding agent that people talk to. */
export interface Conversation {
  readonly id: string
  readonly sandbox: string
  readonly state: Activity
  /** Beginning of the first message. */
  readonly title: string
  readonly repo: string | null
  readonly agent: string
  /** The agent's own name for it, once it has begun. */
  readonly agentSessionId: string | null
  readonly model: string | null
  readonly permission: 'auto' | 'ask'
  readonly budgetUsd: number
  readonly createdMs: number
  readonly usedMs: number
  readonly usage: { readonly costUsd: number }
  readonly published: Published | null
}

export interface NewConversation {
  /** Makes repeated requests create one conversation. */
  readonly sessionId: string
  readonly repo?: string
  readonly ref?: string
  readonly sandbox?: string
  readonly agent?: string
  readonly model?: string
  readonly permission: 'auto' | 'ask'
  readonly budgetUsd?: number
}

export type RestoreTarget = { readonly message: string } | { readonly undo: true }

function urlOf(conversation: string, tail = ''): string {
  return `/api/conversations/${encodeURIComponent(conversation)}${tail}`
}

/** Shared conversations in the list. */
const MAX_SHARED = 20

/** Distinguishes the id of a conversation from those of sessions and runs. */
export function isConversationId(id: string): boolean {
  return /^[0-9a-z]{32}__/.test(id)
}

/** The conversations of the account, and those that others share with it. */
export async function listConversations(): Promise<readonly Conversation[]> {
  const [{ conversations }, grants] = await Promise.all([
    requestJson<{ conversations: readonly Conversation[] }>('/api/conversations'),
    listHeldGrants(),
  ])
  const own = new Set(conversations.map(({ id }) => id))
  const shared = grants.flatMap(({ session }) =>
    session !== null && isConversationId(session) && !own.has(session) ? [session] : [],
  )
  const found = await Promise.allSettled([...new Set(shared)].slice(0, MAX_SHARED).map(readConversation))
  return [...conversations, ...found.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))]
}

export function readConversation(conversation: string): Promise<Conversation> {
  return requestJson<Conversation>(urlOf(conversation))
}

export function createConversation(order: NewConversation): Promise<Conversation> {
  return requestJson<Conversation>('/api/conversations', { method: 'POST', json: order })
}

/** Repeating it with the same id sends nothing twice. */
export async function sendFirstMessage(conversation: string, id: string, text: string): Promise<void> {
  await request(urlOf(conversation, '/messages'), { method: 'POST', json: { id, text } })
}

/** Begins to restore the files to those of the time at which a message was sent, or to undo the last restore. */
export async function restoreConversation(conversation: string, target: RestoreTarget): Promise<void> {
  await request(urlOf(conversation, '/restore'), { method: 'POST', json: target })
}

/** Starts the sandbox if it is stopped. */
export async function readChange({
  id,
  sandbox,
}: Pick<Conversation, 'id' | 'sandbox'>): Promise<PublishableChange> {
  const read = (): Promise<PublishableChange> => requestJson<PublishableChange>(urlOf(id, '/publish'))
  try {
    return await read()
  } catch (caught) {
    if (!(caught instanceof ApiError && caught.code === 'sandbox_stopped')) throw caught
    await startSandbox(sandbox)
    return read()
  }
}

/** `repo` confirms the repository. Repeating it finds its branch and pull request. */
export function publishConversation(
  conversation: string,
  publication: Publication & { readonly repo: string },
): Promise<Published> {
  return requestJson<Published>(urlOf(conversation, '/publish'), { method: 'POST', json: publication })
}

export async function deleteConversation(conversation: string): Promise<void> {
  await request(urlOf(conversation), { method: 'DELETE' })
}

/** Opens the socket of a conversation, which sends the entries after a number. The sign-in's cookie authenticates it. */
export function openConversationSocket(conversation: string, after: number): WebSocket {
  const query = new URLSearchParams({ sessionId: conversation, after: String(after) })
  return new WebSocket(`/ws/v2?${query.toString()}`)
}
