import {
  type Block,
  type Conversation,
  isRecord,
  listOf,
  piecesOf,
  type Reply,
  textsOf,
} from '../fake-model/script.ts'
import type { ModelApi } from '../fake-model/server.ts'

const DEFAULT_USAGE = { input_tokens: 100, output_tokens: 20 }

const textOf = ({ content }: Reply): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')

function callsOf(id: string, { content }: Reply): readonly Extract<Block, { type: 'tool_use' }>[] {
  return content.flatMap((block, at) =>
    block.type === 'tool_use' ? [{ ...block, id: block.id ?? `call_${id}_${at}` }] : [],
  )
}

function finishReasonOf({ stopReason, content }: Reply): string {
  return stopReason ?? (content.some(({ type }) => type === 'tool_use') ? 'tool_calls' : 'stop')
}

/** Cached tokens are part of the prompt's. */
function usageOf({ usage = DEFAULT_USAGE }: Reply): Readonly<Record<string, unknown>> {
  const { input_tokens: input, output_tokens: output, cache_read_input_tokens: cached = 0 } = usage
  return {
    prompt_tokens: input + cached,
    completion_tokens: output,
    total_tokens: input + cached + output,
    prompt_tokens_details: { cached_tokens: cached },
  }
}

function readConversation(body: Readonly<Record<string, unknown>>): Conversation {
  const messages = listOf(body['messages']).filter(isRecord)
  const roles = messages.map(({ role }) => role)
  const last = messages.findLast(({ role }) => role === 'tool')
  return {
    model: typeof body['model'] === 'string' ? body['model'] : '',
    isStreamed: body['stream'] === true,
    isSide: listOf(body['tools']).length === 0,
    // Results of one turn follow each other.
    toolResults: roles.filter((role, at) => role === 'tool' && roles[at - 1] !== 'tool').length,
    lastToolResult: last === undefined ? '' : textsOf(last['content']).join('\n'),
    userTexts: messages.filter(({ role }) => role === 'user').flatMap(({ content }) => textsOf(content)),
  }
}

function formatMessage(id: string, model: string, reply: Reply): unknown {
  const calls = callsOf(id, reply).map(({ id: call, name, input }) => ({
    id: call,
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }))
  const message = {
    role: 'assistant',
    content: textOf(reply),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return {
    id,
    object: 'chat.completion',
    created: 0,
    model,
    choices: [{ index: 0, message, finish_reason: finishReasonOf(reply) }],
    usage: usageOf(reply),
  }
}

const formatEvent = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`

/** Usage comes in a last chunk without choices, and only to requests that ask for it; until then it is null. */
function* streamMessage(
  id: string,
  { model, body }: { readonly model: string; readonly body: Readonly<Record<string, unknown>> },
  reply: Reply,
): Generator<string> {
  const options = body['stream_options']
  const hasUsage = isRecord(options) && options['include_usage'] === true
  const chunk = { id, object: 'chat.completion.chunk', created: 0, model }
  const choice = (delta: unknown, finish: string | null = null): string =>
    formatEvent({
      ...chunk,
      choices: [{ index: 0, delta, finish_reason: finish }],
      ...(hasUsage && { usage: null }),
    })
  yield choice({ role: 'assistant', content: '' })
  for (const piece of piecesOf(textOf(reply), reply)) yield choice({ content: piece })
  for (const [index, { id: call, name, input }] of callsOf(id, reply).entries()) {
    yield choice({
      tool_calls: [{ index, id: call, type: 'function', function: { name, arguments: '' } }],
    })
    for (const piece of piecesOf(JSON.stringify(input), reply))
      yield choice({ tool_calls: [{ index, function: { arguments: piece } }] })
  }
  yield choice({}, finishReasonOf(reply))
  if (hasUsage) yield formatEvent({ ...chunk, choices: [], usage: usageOf(reply) })
  yield 'data: [DONE]\n\n'
}

export const CHAT_COMPLETIONS: ModelApi = {
  path: '/v1/chat/completions',
  fixed: {},
  readConversation,
  formatMessage,
  streamMessage,
  formatErrorEvent: (error) => formatEvent({ error }),
}
