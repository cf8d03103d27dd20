import type { ModelProvider } from '@sandwire/operator-settings'

/** Estimates of the input, for the reservation only; the response states what was used. */
const CHARS_PER_TOKEN = 3
const TOKENS_PER_FILE = 2_000
const BASE64_CHARS_PER_TOKEN = 100

type Json = Readonly<Record<string, unknown>>

/** A request that may be sent. */
export interface AcceptedRequest {
  readonly model: string
  readonly isStreamed: boolean
  /** False for requests that only count tokens. */
  readonly isMetered: boolean
  readonly inputTokens: number
  /** Output that it asks for; undefined: no limit. */
  readonly outputTokens: number | undefined
  /** Path and query at the provider. */
  readonly path: string
  /** The body with this limit of its output. */
  readonly withOutput: (tokens: number) => string
}

export type ModelRequestResult =
  | { readonly isOk: true; readonly request: AcceptedRequest }
  | { readonly isOk: false; readonly status: 400 | 403 | 404 | 405; readonly message: string }

const refuse = (status: 400 | 403 | 404 | 405, message: string): ModelRequestResult => ({
  isOk: false,
  status,
  message,
})

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const recordsIn = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isRecord) : [])

/** Blocks of a message, with those of tool results. */
function blocksOf(content: unknown): readonly Json[] {
  return recordsIn(content).flatMap((block) => [block, ...recordsIn(block['content'])])
}

function estimateInput(text: string, files: readonly string[]): number {
  const fileChars = files.reduce((sum, { length }) => sum + length, 0)
  return Math.ceil(
    (text.length - fileChars) / CHARS_PER_TOKEN +
      fileChars / BASE64_CHARS_PER_TOKEN +
      files.length * TOKENS_PER_FILE,
  )
}

const positiveInteger = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined

/** Tools that run in the sandbox, and the search among them. All others run at the provider, where they could reach any host. */
const ANTHROPIC_TOOLS = /^(custom|(bash|text_editor|memory|computer|tool_search_tool_[a-z0-9]+)_\d+)$/
/** Parts of a request that let the provider connect to other hosts, or that have another price. */
const ANTHROPIC_REFUSED = ['mcp_servers', 'container'] as const

function findAnthropicProblem(body: Json): string | undefined {
  const field = ANTHROPIC_REFUSED.find((name) => body[name] !== undefined)
  if (field !== undefined) return `"${field}" is not allowed`
  if (body['speed'] !== undefined && body['speed'] !== 'standard') return 'only the standard speed is allowed'
  for (const { type, name } of recordsIn(body['tools']))
    if (type !== undefined && (typeof type !== 'string' || !ANTHROPIC_TOOLS.test(type)))
      return `tool "${typeof name === 'string' ? name : ''}" runs at the provider, which is not allowed`
  const blocks = [...recordsIn(body['messages']), { content: body['system'] }].flatMap(({ content }) =>
    blocksOf(content),
  )
  if (
    blocks.some(
      ({ source }) =>
        isRecord(source) &&
        source['type'] !== 'base64' &&
        source['type'] !== 'text' &&
        source['type'] !== 'content',
    )
  )
    return 'images and documents by URL or file id are not allowed'
  return undefined
}

/** A smaller output must leave room for thinking, which has its own limit. */
function limitThinking(thinking: unknown, tokens: number): unknown {
  if (!isRecord(thinking) || thinking['type'] !== 'enabled') return thinking
  const budget = positiveInteger(thinking['budget_tokens']) ?? 0
  if (budget < tokens) return thinking
  // The API accepts no less than 1024.
  return tokens > 2_048 ? { ...thinking, budget_tokens: tokens - 1_024 } : { type: 'disabled' }
}

function readAnthropic(path: string, query: URLSearchParams, text: string, body: Json): ModelRequestResult {
  const isMetered = path === '/v1/messages'
  if (!isMetered && path !== '/v1/messages/count_tokens') return refuse(404, `no such path: ${path}`)
  const problem = findAnthropicProblem(body)
  if (problem !== undefined) return refuse(403, problem)
  const outputTokens = positiveInteger(body['max_tokens'])
  if (isMetered && outputTokens === undefined) return refuse(400, 'max_tokens is missing')
  const files = recordsIn(body['messages'])
    .flatMap(({ content }) => blocksOf(content))
    .flatMap(({ source }) => (isRecord(source) && typeof source['data'] === 'string' ? [source['data']] : []))
  return {
    isOk: true,
    request: {
      model: String(body['model']),
      isStreamed: body['stream'] === true,
      isMetered,
      inputTokens: estimateInput(text, files),
      outputTokens,
      path: query.get('beta') === 'true' ? `${path}?beta=true` : path,
      withOutput: (tokens) => {
        if (!isMetered || tokens === outputTokens) return text
        const thinking = limitThinking(body['thinking'], tokens)
        return JSON.stringify({ ...body, max_tokens: tokens, ...(thinking !== undefined && { thinking }) })
      },
    },
  }
}

/** Clients add the version, which the base URL contains. */
const OPENAI_PATH = /^(?:\/v1)?(\/(?:chat\/completions|responses))$/
/**
 * Parts of a request by which the provider would reach other hosts, run another model, or use what is stored in the operator's
 * account.
 */
const OPENAI_REFUSED = [
  'web_search_options',
  'plugins',
  'models',
  'conversation',
  'previous_response_id',
  'prompt',
] as const

function findOpenAiProblem(body: Json): string | undefined {
  const field = OPENAI_REFUSED.find((name) => body[name] !== undefined && body[name] !== null)
  if (field !== undefined) return `"${field}" is not allowed`
  if (body['service_tier'] === 'priority') return 'the service tier "priority" is not allowed'
  if (body['background'] === true) return '"background" is not allowed'
  if (body['n'] !== undefined && body['n'] !== 1) return '"n" must be 1'
  for (const { type } of recordsIn(body['tools']))
    if (type !== 'function' && type !== 'custom')
      return `tools of type "${String(type)}" run at the provider, which is not allowed`
  const items = [...recordsIn(body['messages']), ...recordsIn(body['input'])]
  if (items.some(({ type }) => type === 'item_reference')) return 'references to stored items are not allowed'
  const isRemote = (url: unknown): boolean => typeof url === 'string' && !url.startsWith('data:')
  for (const block of items.flatMap((item) => [...blocksOf(item['content']), ...recordsIn(item['output'])])) {
    const { image_url: image, file_url: url, file } = block
    const id = block['file_id'] ?? (isRecord(file) ? file['file_id'] : undefined)
    if (isRemote(isRecord(image) ? image['url'] : image) || isRemote(url) || typeof id === 'string')
      return 'images and files by URL or file id are not allowed'
  }
  return undefined
}

/** Images and files within the request. */
function dataUrlsIn(body: Json): readonly string[] {
  return [...recordsIn(body['messages']), ...recordsIn(body['input'])]
    .flatMap(({ content }) => blocksOf(content))
    .flatMap(({ image_url: image, file }) => [
      isRecord(image) ? image['url'] : image,
      isRecord(file) ? file['file_data'] : undefined,
    ])
    .filter((data) => typeof data === 'string')
}

function readOpenAi(path: string, text: string, body: Json): ModelRequestResult {
  const [, operation] = OPENAI_PATH.exec(path) ?? []
  if (operation === undefined) return refuse(404, `no such path: ${path}`)
  const problem = findOpenAiProblem(body)
  if (problem !== undefined) return refuse(403, problem)
  const isChat = operation === '/chat/completions'
  const field = isChat ? 'max_completion_tokens' : 'max_output_tokens'
  const isStreamed = body['stream'] === true
  const { max_tokens: older, ...rest } = body
  return {
    isOk: true,
    request: {
      model: String(body['model']),
      isStreamed,
      isMetered: true,
      inputTokens: estimateInput(text, dataUrlsIn(body)),
      outputTokens: positiveInteger(body[field]) ?? positiveInteger(older),
      path: operation,
      withOutput: (tokens) => {
        // Compatible servers know the older field only.
        const hasField = older === undefined || body[field] !== undefined
        const limit = hasField ? { [field]: tokens } : { max_tokens: tokens }
        const usage = isStreamed && isChat ? { stream_options: { include_usage: true } } : {}
        return JSON.stringify({ ...rest, ...limit, ...usage })
      },
    },
  }
}

/** Reads a request to a provider and refuses what is not on its lists. `path` is the path below the base URL. */
export function readModelRequest(
  api: ModelProvider['api'],
  {
    method,
    path,
    query,
  }: { readonly method: string; readonly path: string; readonly query: URLSearchParams },
  text: string,
): ModelRequestResult {
  if (method !== 'POST') return refuse(405, 'only POST is allowed')
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // Refused below, as any other value that is no object.
  }
  if (!isRecord(body)) return refuse(400, 'the body is not a JSON object')
  if (typeof body['model'] !== 'string') return refuse(400, 'model is missing')
  return api === 'anthropic' ? readAnthropic(path, query, text, body) : readOpenAi(path, text, body)
}
