import type { ModelProvider } from '@sandwire/operator-settings'
import { NO_TOKENS } from './grant.ts'
import type { MeteredTokens } from './providers.ts'

/** Bytes of an event that was not received whole. Longer ones carry no usage. */
const MAX_LINE_CHARS = 1024 * 1024
/** Estimates output that was received before a connection broke. */
const CHARS_PER_TOKEN = 3
/** Characters of names and braces around the output of a delta. */
const DELTA_ENVELOPE_CHARS = 40

type Json = Readonly<Record<string, unknown>>
type Counts = { -readonly [K in keyof MeteredTokens]: number }

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function recordOf(value: unknown): Json {
  return isRecord(value) ? value : {}
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

/** Fields that a usage object states; later events replace earlier ones. */
function readAnthropicUsage(usage: Json): Partial<Counts> {
  const long = recordOf(usage['cache_creation'])['ephemeral_1h_input_tokens']
  return {
    inputTokens: count(usage['input_tokens']),
    outputTokens: count(usage['output_tokens']),
    cacheReadTokens: count(usage['cache_read_input_tokens']),
    cacheWriteTokens: count(usage['cache_creation_input_tokens']),
    longCacheWriteTokens: count(long),
  } as Partial<Counts>
}

/** OpenAI counts cached tokens as part of the input. */
function readOpenAiUsage(usage: Json): Partial<Counts> {
  const details = recordOf(usage['prompt_tokens_details'] ?? usage['input_tokens_details'])
  const cached = count(details['cached_tokens']) ?? 0
  const input = count(usage['prompt_tokens'] ?? usage['input_tokens'])
  return {
    inputTokens: input === undefined ? undefined : Math.max(0, input - cached),
    cacheReadTokens: cached,
    outputTokens: count(usage['completion_tokens'] ?? usage['output_tokens']),
  } as Partial<Counts>
}

/** The usage in a body or in the data of an event. */
function findUsage(api: ModelProvider['api'], data: Json): Partial<Counts> {
  const inner = recordOf(data[api === 'anthropic' ? 'message' : 'response'])
  const usage = data['usage'] ?? inner['usage']
  if (!isRecord(usage)) return {}
  return api === 'anthropic' ? readAnthropicUsage(usage) : readOpenAiUsage(usage)
}

/** Event types whose data ends a response with complete usage. */
const LAST_EVENTS = ['message_stop', 'response.completed', 'response.incomplete', 'response.failed']

/** Counts the tokens of a response while its bytes pass. */
export class UsageMeter {
  readonly #api: ModelProvider['api']
  readonly #decoder = new TextDecoder()
  #counts: Counts = { ...NO_TOKENS, longCacheWriteTokens: 0 }
  #line = ''
  #isSkipping = false
  #dataChars = 0
  #isComplete = false
  #hasUsage = false

  constructor(api: ModelProvider['api']) {
    this.#api = api
  }

  /** Receives bytes of an event stream. */
  push(bytes: Uint8Array): void {
    const lines = (this.#line + this.#decoder.decode(bytes, { stream: true })).split('\n')
    this.#line = lines.pop() ?? ''
    for (const line of lines) {
      if (!this.#isSkipping) this.#read(line)
      this.#isSkipping = false
    }
    if (this.#line.length <= MAX_LINE_CHARS) return
    this.#line = ''
    this.#isSkipping = true
  }

  /** Receives a whole body that is not a stream; undefined: it was not received whole. */
  readBody(text: string): void {
    try {
      const data: unknown = JSON.parse(text)
      if (isRecord(data)) this.#add(findUsage(this.#api, data))
      this.#isComplete = true
    } catch {
      // Estimated below.
    }
    if (!this.#hasUsage) this.#dataChars += text.length
  }

  /** The usage so far. For an incomplete response without stated usage, an estimate. */
  result(fallbackInputTokens: number): MeteredTokens {
    if (this.#isComplete && this.#hasUsage) return this.#counts
    const estimated = Math.ceil(this.#dataChars / CHARS_PER_TOKEN)
    return {
      ...this.#counts,
      inputTokens: this.#hasUsage ? this.#counts.inputTokens : fallbackInputTokens,
      outputTokens: Math.max(this.#counts.outputTokens, estimated),
    }
  }

  #read(line: string): void {
    if (!line.startsWith('data:')) return
    const text = line.slice(5).trim()
    if (text === '[DONE]') this.#isComplete = true
    if (LAST_EVENTS.some((type) => text.includes(`"${type}"`))) this.#isComplete = true
    // OpenAI's chunks state `null` until the last one.
    if (!/"usage"\s*:\s*\{/.test(text)) {
      this.#dataChars += deltaChars(text)
      return
    }
    try {
      const data: unknown = JSON.parse(text)
      if (isRecord(data)) this.#add(findUsage(this.#api, data))
    } catch {
      // Not JSON: nothing that a client could use either.
    }
  }

  #add(found: Partial<Counts>): void {
    for (const [name, value] of Object.entries(found)) {
      if (value === undefined) continue
      this.#counts[name as keyof Counts] = value
      this.#hasUsage = true
    }
  }
}

/** Characters of the model's output in an event, roughly: those from its delta on. */
function deltaChars(text: string): number {
  const at = text.indexOf('"delta":')
  return at === -1 ? 0 : Math.max(0, text.length - at - DELTA_ENVELOPE_CHARS)
}
