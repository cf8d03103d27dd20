import type { Partial, RunEvent } from '@sandwire/agent'
import type { OpaqueJson } from './frames.ts'

type Content = 'text' | 'tool_call' | 'tool_result'

/** Events that are messages of the agent. */
export type ContentEvent = Extract<RunEvent, { readonly type: Content }>

function blockOf(event: ContentEvent): OpaqueJson {
  switch (event.type) {
    case 'text':
      return event.thinking === true
        ? { type: 'thinking', thinking: event.text }
        : { type: 'text', text: event.text }
    case 'tool_call':
      return { type: 'tool_use', id: event.id, name: event.name, input: event.input }
    case 'tool_result':
      return {
        type: 'tool_result',
        tool_use_id: event.id,
        content: event.content,
        is_error: event.isError,
      }
  }
}

/** A content event in the form of the Claude Agent SDK: one block per message. `uuid` names it for clients that keep a list. */
export function toSdkMessage(event: ContentEvent, sessionId: string | null, uuid: string): OpaqueJson {
  const role = event.type === 'tool_result' ? 'user' : 'assistant'
  return {
    type: role,
    message: { role, content: [blockOf(event)] },
    parent_tool_use_id: event.subagent ?? null,
    session_id: sessionId ?? '',
    uuid,
  }
}

/** Text of a message that is being written, as the SDK streams it. */
export function toStreamEvent(
  { kind, text, subagent }: Partial['partial'],
  sessionId: string | null,
): OpaqueJson {
  const delta = {
    text: { type: 'text_delta', text },
    thinking: { type: 'thinking_delta', thinking: text },
    input: { type: 'input_json_delta', partial_json: text },
  }[kind]
  return {
    type: 'stream_event',
    event: { type: 'content_block_delta', index: 0, delta },
    parent_tool_use_id: subagent ?? null,
    session_id: sessionId ?? '',
  }
}

/** What the SDK sends when a conversation of the agent begins. */
export function toInitMessage(sessionId: string, model: string, version: string): OpaqueJson {
  return { type: 'system', subtype: 'init', session_id: sessionId, model, claude_code_version: version }
}
