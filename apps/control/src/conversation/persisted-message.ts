import type { InputRequest } from '@sandwire/agent'
import type { OpaqueJson } from './frames.ts'
import type { GivenAnswer } from './snapshot.ts'

/** A message as the operator's API stores it. */
export interface PersistedMessage {
  readonly role: 'user' | 'assistant'
  readonly type: 'message' | 'permission_request' | 'permission_response' | 'question' | 'question_answer'
  readonly content: string
  readonly metadata: OpaqueJson
}

type Source = { readonly labels: OpaqueJson } & (
  | { readonly kind: 'user'; readonly text: string; readonly account: string }
  | {
      readonly kind: 'assistant'
      readonly text: string
      readonly tokensUsed: number
      readonly stopReason: string
      readonly agentSession: string | null
    }
  | { readonly kind: 'request'; readonly request: InputRequest }
  | { readonly kind: 'answer'; readonly of: InputRequest['kind']; readonly answer: GivenAnswer }
)

export function toPersisted(source: Source): PersistedMessage {
  const { labels } = source
  switch (source.kind) {
    case 'user':
      return {
        role: 'user',
        type: 'message',
        content: source.text,
        metadata: { ...labels, by: source.account },
      }
    case 'assistant': {
      const { text, tokensUsed, stopReason, agentSession } = source
      return {
        role: 'assistant',
        type: 'message',
        content: text,
        metadata: { ...labels, tokensUsed, stopReason, agentSession },
      }
    }
    case 'request': {
      const { requestId, prompt, kind, tool, questions } = source.request
      const type = kind === 'question' ? 'question' : 'permission_request'
      const asked =
        kind === 'question' ? { questions } : { toolName: tool?.name ?? '', toolInput: tool?.input ?? {} }
      return { role: 'assistant', type, content: prompt, metadata: { ...labels, requestId, ...asked } }
    }
    case 'answer': {
      const { requestId, decision, answers, by, message } = source.answer
      const type = source.of === 'question' ? 'question_answer' : 'permission_response'
      const given = source.of === 'question' ? { answers: answers ?? {} } : { decision }
      const content = message ?? (answers === undefined ? decision : Object.values(answers).join('\n'))
      return { role: 'user', type, content, metadata: { ...labels, requestId, by, ...given } }
    }
  }
}
