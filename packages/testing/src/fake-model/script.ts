/** One block of a scripted message. */
export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: unknown; readonly id?: string }

export interface FakeUsage {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_creation_input_tokens?: number
  readonly cache_read_input_tokens?: number
}

/** What goes wrong instead of, or during, a response. */
export type Fault =
  /** An error response. `shouldRetry` sets `x-should-retry`. */
  | {
      readonly kind: 'status'
      readonly status: number
      readonly type?: string
      readonly message?: string
      readonly headers?: Readonly<Record<string, string>>
    }
  /** The connection is closed after this many events, or in the middle of a body that is not streamed. */
  | { readonly kind: 'cut'; readonly afterEvents: number }
  /** No response, until the client goes away. */
  | { readonly kind: 'hang' }
  /** An `error` event in the stream after this many events, as the API sends when it is overloaded. */
  | { readonly kind: 'error_event'; readonly afterEvents: number; readonly type?: string }
  /** An answer in the API's place, such as a redirect. */
  | {
      readonly kind: 'raw'
      readonly status: number
      readonly headers: Readonly<Record<string, string>>
      readonly body: string
    }

/** A scripted response. */
export interface Reply {
  readonly content: readonly Block[]
  /** Default: `tool_use` with a tool call among the blocks, else `end_turn`. */
  readonly stopReason?: string
  readonly usage?: FakeUsage
  /** Pause before each event of a stream, or before a whole body. */
  readonly delayMs?: number
  /** Characters of a text or of a tool's input per delta event. Default: 40. */
  readonly deltaChars?: number
  readonly fault?: Fault
}

/** What scripts decide by, from the body of a request. */
export type Conversation = Pick<
  ModelRequest,
  'model' | 'isStreamed' | 'isSide' | 'toolResults' | 'lastToolResult' | 'userTexts'
>

/** A request as the script sees it. */
export interface ModelRequest {
  readonly method: string
  /** With the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
  /** Number of this request, from 0. */
  readonly index: number
  readonly model: string
  readonly isStreamed: boolean
  /** No tools are offered: a request beside the conversation, such as for a title. */
  readonly isSide: boolean
  /** Messages with tool results so far: the number of the turn within the conversation. */
  readonly toolResults: number
  /** Text of the latest tool result. */
  readonly lastToolResult: string
  /** All texts of the person, in order. */
  readonly userTexts: readonly string[]
}

/** Answers a request. It should decide by the conversation, not by `index`: clients retry and send side requests. */
export type Script = (request: ModelRequest) => Reply | Promise<Reply>

export const say = (text: string, more: Partial<Reply> = {}): Reply => ({
  content: [{ type: 'text', text }],
  ...more,
})

export const callTool = (name: string, input: unknown, more: Partial<Reply> = {}): Reply => ({
  content: [{ type: 'tool_use', name, input }],
  ...more,
})

/** Replies in order, one for each turn of the conversation; the last one is repeated. Side requests get a title. */
export function inTurns(...replies: readonly Reply[]): Script {
  return ({ isSide, toolResults }) => {
    if (isSide) return say('Title')
    return replies[Math.min(toolResults, replies.length - 1)] ?? say('Done')
  }
}

/** The first requests of the conversation fail with the given faults, one each; then the script answers. */
export function withFaults(faults: readonly Fault[], script: Script): Script {
  const left = [...faults]
  return async (request) => {
    const reply = await script(request)
    const fault = request.isSide ? undefined : left.shift()
    return fault === undefined ? reply : { ...reply, fault }
  }
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Texts of a message's content, which is a string or a list of blocks. */
export function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content]
  return listOf(content).flatMap((block) =>
    isRecord(block) && typeof block['text'] === 'string' ? [block['text']] : [],
  )
}

/** Cuts a text into the pieces of a stream. */
export function* piecesOf(text: string, { deltaChars = 40 }: Reply): Generator<string> {
  for (let at = 0; at < text.length; at += deltaChars) yield text.slice(at, at + deltaChars)
}
