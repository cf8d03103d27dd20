import { isRecord, type Json, numberAt, recordAt, recordsAt, textAt } from '../json.ts'
import type { ToolServer } from '../tool-server.ts'
import { AcpTools } from './acp-tools.ts'

/** Version of the Agent Client Protocol. */
const PROTOCOL_VERSION = 1
const METHOD_NOT_FOUND = -32_601

/** What one line leads to: lines for `ClaudeDriver`, and lines for the program. */
export interface Translated {
  readonly toDriver: readonly Json[]
  readonly toProgram: readonly string[]
}

interface Prompt {
  readonly text: string
  readonly uuid: string
}

export interface AcpOptions {
  readonly workspace: string
  /** A session of the program to continue. */
  readonly resume?: string | undefined
  /** Given with the first message: this protocol has no other place for it. */
  readonly systemPrompt?: string | undefined
  readonly toolServers: () => readonly ToolServer[]
}

/** A permission request of the program that waits for an answer. */
interface Asked {
  readonly id: unknown
  readonly options: readonly Json[]
}

/**
 * Translates between the Agent Client Protocol (JSON-RPC over stdin and stdout) and the lines that `ClaudeDriver` reads and
 * writes. So one state machine, one journal format and one set of events serve every agent. Pure.
 */
export class AcpTranslator {
  readonly #options: AcpOptions
  readonly #tools = new AcpTools()
  #nextId = 1
  /** Methods of requests to the program, by id. */
  readonly #requests = new Map<number, string>()
  #session: string | undefined
  #version = ''
  /** Messages that wait for the end of the turn: this protocol takes none during a turn. */
  readonly #queue: Prompt[] = []
  #isInTurn = false
  #current: Prompt | undefined
  readonly #asked = new Map<string, Asked>()
  #text = ''
  #thought = ''
  #lastText = ''
  #turns = 0
  #costUsd: number | undefined
  #toDriver: Json[] = []
  #toProgram: string[] = []

  constructor(options: AcpOptions) {
    this.#options = options
  }

  /** A line that `ClaudeDriver` wrote for the program. */
  fromDriver(line: Json): Translated {
    const type = textAt(line, 'type')
    if (type === 'user') this.#enqueue(line)
    else if (type === 'control_response') this.#answered(recordAt(line, 'response'))
    else if (textAt(recordAt(line, 'request'), 'subtype') === 'initialize') this.#initialize()
    else if (textAt(recordAt(line, 'request'), 'subtype') === 'interrupt') this.#cancel()
    return this.#take()
  }

  /** A line that the program wrote. */
  fromProgram(line: Json): Translated {
    const method = textAt(line, 'method')
    if (method === undefined) this.#response(line)
    else if (line['id'] === undefined) this.#notification(method, recordAt(line, 'params'))
    else this.#request(line['id'], method, recordAt(line, 'params'))
    return this.#take()
  }

  #take(): Translated {
    const translated = { toDriver: this.#toDriver, toProgram: this.#toProgram }
    this.#toDriver = []
    this.#toProgram = []
    return translated
  }

  #send(message: Json): void {
    this.#toProgram.push(JSON.stringify({ jsonrpc: '2.0', ...message }))
  }

  #call(method: string, params: Json): void {
    const id = this.#nextId
    this.#nextId += 1
    this.#requests.set(id, method)
    this.#send({ id, method, params })
  }

  #initialize(): void {
    this.#call('initialize', {
      protocolVersion: PROTOCOL_VERSION,
      // The program runs beside the files and uses them itself.
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      clientInfo: { name: 'sandwire', version: '1' },
    })
  }

  #enqueue(line: Json): void {
    const text = textAt(recordAt(line, 'message'), 'content') ?? ''
    this.#queue.push({ text, uuid: textAt(line, 'uuid') ?? '' })
    this.#prompt()
  }

  /** Sends the next message, if the program is ready for one. */
  #prompt(): void {
    const next = this.#isInTurn || this.#session === undefined ? undefined : this.#queue.shift()
    if (next === undefined) return
    this.#isInTurn = true
    this.#turns += 1
    this.#current = next
    this.#toDriver.push({ type: 'command_lifecycle', command_uuid: next.uuid, state: 'started' })
    const { systemPrompt = '' } = this.#options
    const texts = this.#turns === 1 && systemPrompt !== '' ? [systemPrompt, next.text] : [next.text]
    this.#call('session/prompt', {
      sessionId: this.#session,
      prompt: texts.map((text) => ({ type: 'text', text })),
    })
  }

  /** Ends the turn and drops waiting messages. */
  #cancel(): void {
    for (const { uuid } of this.#queue.splice(0))
      this.#toDriver.push({ type: 'command_lifecycle', command_uuid: uuid, state: 'cancelled' })
    for (const [requestId, { id }] of this.#asked) {
      this.#send({ id, result: { outcome: { outcome: 'cancelled' } } })
      this.#toDriver.push({ type: 'control_cancel_request', request_id: requestId })
    }
    this.#asked.clear()
    if (this.#session !== undefined && this.#isInTurn)
      this.#send({ method: 'session/cancel', params: { sessionId: this.#session } })
  }

  #answered(response: Json | undefined): void {
    const requestId = textAt(response, 'request_id') ?? ''
    const asked = this.#asked.get(requestId)
    if (asked === undefined) return
    this.#asked.delete(requestId)
    const answer = recordAt(response, 'response')
    const isAllowed = textAt(answer, 'behavior') === 'allow'
    const wanted = isAllowed
      ? answer?.['updatedPermissions'] === undefined
        ? ['allow_once', 'allow_always']
        : ['allow_always', 'allow_once']
      : ['reject_once', 'reject_always']
    const kinds = new Map(asked.options.map((option) => [textAt(option, 'kind'), textAt(option, 'optionId')]))
    const optionId = wanted.map((kind) => kinds.get(kind)).find((id) => id !== undefined)
    const outcome = optionId === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId }
    this.#send({ id: asked.id, result: { outcome } })
  }

  #response(line: Json): void {
    const id = numberAt(line, 'id') ?? -1
    const method = this.#requests.get(id)
    this.#requests.delete(id)
    const error = recordAt(line, 'error')
    const result = recordAt(line, 'result')
    if (method === 'session/prompt') return this.#turnEnded(result, error)
    if (error !== undefined && method !== undefined)
      return this.#fail(`${method}: ${textAt(error, 'message') ?? 'failed'}`)
    if (method === 'initialize') {
      if (numberAt(result, 'protocolVersion') !== PROTOCOL_VERSION)
        return this.#fail(`The agent does not speak version ${PROTOCOL_VERSION} of the Agent Client Protocol`)
      this.#version = textAt(recordAt(result, 'agentInfo'), 'version') ?? ''
      return this.#openSession(recordAt(result, 'agentCapabilities'))
    }
    if (method === 'session/new') this.#sessionOpened(textAt(result, 'sessionId') ?? '', result)
    if (method === 'session/load') this.#sessionOpened(this.#options.resume ?? '', result)
  }

  #openSession(capabilities: Json | undefined): void {
    const { workspace: cwd, resume: sessionId } = this.#options
    const mcpServers = this.#options
      .toolServers()
      .map(({ name, argv: [command, ...args] }) => ({ name, command, args, env: [] }))
    const settings = { cwd, mcpServers }
    if (sessionId === undefined) return this.#call('session/new', settings)
    if (capabilities?.['loadSession'] !== true)
      return this.#fail('The agent cannot continue an earlier conversation')
    this.#call('session/load', { sessionId, ...settings })
  }

  #sessionOpened(session: string, result: Json | undefined): void {
    this.#session = session
    this.#toDriver.push({
      type: 'system',
      subtype: 'init',
      session_id: this.#session,
      model: modelOf(result),
      claude_code_version: this.#version,
    })
    this.#prompt()
  }

  /** The program cannot work: ends the turn as failed. */
  #fail(message: string): void {
    this.#isInTurn = false
    this.#toDriver.push({
      type: 'result',
      subtype: 'error_during_execution',
      is_error: true,
      result: message,
    })
  }

  #turnEnded(result: Json | undefined, error: Json | undefined): void {
    this.#flush()
    this.#isInTurn = false
    if (this.#current !== undefined)
      this.#toDriver.push({
        type: 'command_lifecycle',
        command_uuid: this.#current.uuid,
        state: 'completed',
      })
    this.#current = undefined
    const reason = textAt(result, 'stopReason')
    const cost = this.#costUsd === undefined ? {} : { total_cost_usd: this.#costUsd }
    if (error !== undefined) this.#fail(textAt(error, 'message') ?? 'The agent failed')
    else if (reason === 'max_turn_requests')
      this.#toDriver.push({ type: 'result', subtype: 'error_max_turns', is_error: true, ...cost })
    else if (reason === 'end_turn' || reason === 'cancelled')
      this.#toDriver.push({ type: 'result', subtype: 'success', result: this.#lastText, ...cost })
    else this.#fail(`The agent ended its turn: ${reason ?? 'no reason'}`)
    this.#prompt()
  }

  #notification(method: string, params: Json | undefined): void {
    // While a session is loaded, the program repeats all of it.
    if (method !== 'session/update' || this.#session === undefined) return
    const update = recordAt(params, 'update')
    const kind = textAt(update, 'sessionUpdate')
    const text = textAt(recordAt(update, 'content'), 'text') ?? ''
    switch (kind) {
      case 'agent_message_chunk':
        return this.#chunk('text', text)
      case 'agent_thought_chunk':
        return this.#chunk('thinking', text)
      case 'tool_call':
      case 'tool_call_update':
        this.#flush()
        for (const block of this.#tools.update(update ?? {})) this.#block(block)
        return
      case 'plan':
        this.#flush()
        for (const block of this.#tools.plan(update ?? {})) this.#block(block)
        return
      case 'usage_update':
        this.#costUsd = numberAt(recordAt(update, 'cost'), 'amount') ?? this.#costUsd
        return
      default:
    }
  }

  /** A piece of text: shown at once, and again as a whole when it is finished. */
  #chunk(kind: 'text' | 'thinking', text: string): void {
    if (text === '') return
    // The other kind of text is finished.
    if ((kind === 'text' ? this.#thought : this.#text) !== '') this.#flush()
    if (kind === 'text') this.#text += text
    else this.#thought += text
    const delta = kind === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', thinking: text }
    this.#toDriver.push({ type: 'stream_event', event: { type: 'content_block_delta', index: 0, delta } })
  }

  #flush(): void {
    const [text, thinking] = [this.#text, this.#thought]
    this.#text = ''
    this.#thought = ''
    if (text === '' && thinking === '') return
    this.#toDriver.push({ type: 'stream_event', event: { type: 'content_block_stop', index: 0 } })
    if (thinking !== '') this.#assistant({ type: 'thinking', thinking })
    if (text !== '') {
      this.#lastText = text
      this.#assistant({ type: 'text', text })
    }
  }

  #assistant(block: Json): void {
    // The program does not say how many requests to the model a turn took.
    const id = `turn-${this.#turns}`
    this.#toDriver.push({ type: 'assistant', message: { id, role: 'assistant', content: [block] } })
  }

  /** A tool call, or its result with what the program says about it in a structured form. */
  #block({ structured, ...block }: Json): void {
    if (block['type'] === 'tool_use') return this.#assistant(block)
    this.#toDriver.push({
      type: 'user',
      message: { role: 'user', content: [block] },
      ...(isRecord(structured) ? { tool_use_result: structured } : {}),
    })
  }

  #request(id: unknown, method: string, params: Json | undefined): void {
    if (method === 'session/request_permission') return this.#permission(id, params)
    // Some programs write a file themselves and report it here although they were told that this is not supported.
    if (method === 'fs/write_text_file') return this.#send({ id, result: null })
    const error = { code: METHOD_NOT_FOUND, message: `Method not found: ${method}` }
    this.#send({ id, error })
  }

  #permission(id: unknown, params: Json | undefined): void {
    this.#flush()
    const call = recordAt(params, 'toolCall') ?? {}
    for (const block of this.#tools.update({ ...call, status: 'in_progress' })) this.#block(block)
    const requestId = `acp-${JSON.stringify(id).replaceAll(/[^A-Za-z0-9_.:-]/g, '')}`
    const options: unknown = params?.['options']
    this.#asked.set(requestId, { id, options: Array.isArray(options) ? options.filter(isRecord) : [] })
    const { name, input } = this.#tools.describe(textAt(call, 'toolCallId') ?? '')
    this.#toDriver.push({
      type: 'control_request',
      request_id: requestId,
      request: { subtype: 'can_use_tool', tool_name: name, input },
    })
  }
}

/** The model of a new session, which programs state in either of two ways. */
function modelOf(session: Json | undefined): string {
  const option = recordsAt(session, 'configOptions').find(({ id }) => id === 'model')
  return textAt(option, 'currentValue') ?? textAt(recordAt(session, 'models'), 'currentModelId') ?? ''
}
