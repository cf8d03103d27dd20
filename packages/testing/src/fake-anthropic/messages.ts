import {
  type Block,
  type Conversation,
  type FakeUsage,
  isRecord,
  listOf,
  piecesOf,
  type Reply,
  textsOf,
} from '../fake-model/script.ts'

/** A server-sent event of the Messages API. */
export interface StreamEvent {
  readonly event: string
  readonly data: Readonly<Record<string, unknown>>
}

const DEFAULT_USAGE: FakeUsage = { input_tokens: 100, output_tokens: 20 }

function stopReasonOf({ stopReason, content }: Reply): string {
  return stopReason ?? (content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn')
}

function toolId(message: string, index: number, block: Block): string {
  return (block.type === 'tool_use' ? block.id : undefined) ?? `toolu_${message}_${index}`
}

/** The message as one body. */
export function formatMessage(id: string, model: string, reply: Reply): Readonly<Record<string, unknown>> {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: reply.content.map((block, index) =>
      block.type === 'tool_use' ? { ...block, id: toolId(id, index, block) } : block,
    ),
    stop_reason: stopReasonOf(reply),
    stop_sequence: null,
    usage: reply.usage ?? DEFAULT_USAGE,
  }
}

function* blockEvents(id: string, index: number, block: Block, reply: Reply): Generator<StreamEvent> {
  const start =
    block.type === 'tool_use'
      ? { type: 'tool_use', id: toolId(id, index, block), name: block.name, input: {} }
      : block.type === 'text'
        ? { type: 'text', text: '' }
        : { type: 'thinking', thinking: '', signature: '' }
  yield {
    event: 'content_block_start',
    data: { type: 'content_block_start', index, content_block: start },
  }
  const text =
    block.type === 'tool_use'
      ? JSON.stringify(block.input)
      : block.type === 'text'
        ? block.text
        : block.thinking
  for (const piece of piecesOf(text, reply)) {
    const delta =
      block.type === 'tool_use'
        ? { type: 'input_json_delta', partial_json: piece }
        : block.type === 'text'
          ? { type: 'text_delta', text: piece }
          : { type: 'thinking_delta', thinking: piece }
    yield { event: 'content_block_delta', data: { type: 'content_block_delta', index, delta } }
  }
  yield { event: 'content_block_stop', data: { type: 'content_block_stop', index } }
}

/** The message as the events of a stream. */
export function* streamMessage(id: string, model: string, reply: Reply): Generator<StreamEvent> {
  const usage = reply.usage ?? DEFAULT_USAGE
  const message = {
    ...formatMessage(id, model, reply),
    content: [],
    stop_reason: null,
    usage: { ...usage, output_tokens: 1 },
  }
  yield { event: 'message_start', data: { type: 'message_start', message } }
  for (const [index, block] of reply.content.entries()) yield* blockEvents(id, index, block, reply)
  yield {
    event: 'message_delta',
    data: {
      type: 'message_delta',
      delta: { stop_reason: stopReasonOf(reply), stop_sequence: null },
      usage: { output_tokens: usage.output_tokens },
    },
  }
  yield { event: 'message_stop', data: { type: 'message_stop' } }
}

export function formatEvent({ event, data }: StreamEvent): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}

/** Reads what scripts decide by from a request body. */
export function readConversation(body: Readonly<Record<string, unknown>>): Conversation {
  // Some clients put `system` messages between the others.
  const users = listOf(body['messages'])
    .filter(isRecord)
    .filter(({ role }) => role === 'user')
  const results = users.flatMap(({ content }) => {
    const found = listOf(content).filter((block) => isRecord(block) && block['type'] === 'tool_result')
    return found.length === 0 ? [] : [found]
  })
  const last = results.at(-1)?.at(-1)
  return {
    model: typeof body['model'] === 'string' ? body['model'] : '',
    isStreamed: body['stream'] === true,
    isSide: listOf(body['tools']).length === 0,
    toolResults: results.length,
    lastToolResult: isRecord(last) ? textsOf(last['content']).join('\n') : '',
    userTexts: users.flatMap(({ content }) => textsOf(content)),
  }
}
