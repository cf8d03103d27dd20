import { isRecord, type Json, textAt } from '../json.ts'
import {
  decodeMcp,
  INVALID_PARAMS,
  INVALID_REQUEST,
  type McpId,
  type McpMessage,
  METHOD_NOT_FOUND,
  TOO_MANY_CALLS,
} from './message.ts'

/** Versions of the protocol that offer tools in the same form; the last one is offered to clients that request another. */
const VERSIONS = ['2024-11-05', '2025-03-26', '2025-06-18'] as const
const LATEST = '2025-06-18'
/** Calls without an answer yet, of one client. */
export const MAX_PENDING_CALLS = 16

/** A tool as clients list it. */
export interface McpTool {
  readonly name: string
  readonly title: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly inputSchema: Json
  /** The tool changes nothing. */
  readonly isReadOnly: boolean
}

export interface McpResult {
  readonly text: string
  /** The model is told that the call failed, and why. */
  readonly isError: boolean
}

export type McpEffect =
  /** A line for the client, without the line feed. */
  | { readonly kind: 'send'; readonly line: string }
  /** Run a tool, and give its result to `finished`. */
  | { readonly kind: 'call'; readonly id: McpId; readonly tool: string; readonly args: Json }
  /** The client no longer waits for this call. */
  | { readonly kind: 'cancel'; readonly id: McpId }

export interface McpServerOptions {
  readonly name: string
  readonly version: string
  /** What a model should know about all tools. */
  readonly instructions: string
  readonly tools: readonly McpTool[]
}

/** The server's side of one client of the Model Context Protocol, with tools only. Does no I/O and never throws on what the client writes. */
export class McpServer {
  readonly #options: McpServerOptions
  readonly #pending = new Set<McpId>()
  #isInitialized = false

  constructor(options: McpServerOptions) {
    this.#options = options
  }

  /** A line of the client; `isCut`: it was too long. */
  line(text: string, isCut: boolean): readonly McpEffect[] {
    if (isCut) return [sendError(null, INVALID_REQUEST, 'The line is too long')]
    if (text.trim() === '') return []
    return this.#message(decodeMcp(text))
  }

  /** The result of a call; dropped if the client has canceled it. */
  finished(id: McpId, { text, isError }: McpResult): readonly McpEffect[] {
    if (!this.#pending.delete(id)) return []
    return [sendResult(id, { content: [{ type: 'text', text }], isError })]
  }

  #message(message: McpMessage): readonly McpEffect[] {
    switch (message.kind) {
      case 'invalid':
        return [sendError(message.id, message.code, message.message)]
      case 'response':
        return []
      case 'notification':
        return message.method === 'notifications/cancelled' ? this.#cancel(message.params) : []
      case 'request':
        return this.#request(message)
    }
  }

  #cancel({ requestId }: Json): readonly McpEffect[] {
    const id = typeof requestId === 'string' || typeof requestId === 'number' ? requestId : undefined
    return id !== undefined && this.#pending.delete(id) ? [{ kind: 'cancel', id }] : []
  }

  #request({ id, method, params }: Extract<McpMessage, { kind: 'request' }>): readonly McpEffect[] {
    if (method === 'ping') return [sendResult(id, {})]
    if (method === 'initialize') return [sendResult(id, this.#initialize(params))]
    if (!this.#isInitialized)
      return [sendError(id, INVALID_REQUEST, 'The first request must be "initialize"')]
    if (method === 'tools/list') return [sendResult(id, { tools: this.#options.tools.map(describeTool) })]
    if (method === 'tools/call') return this.#call(id, params)
    return [sendError(id, METHOD_NOT_FOUND, 'No such method')]
  }

  #initialize(params: Json): Json {
    this.#isInitialized = true
    const requested = textAt(params, 'protocolVersion')
    const { name, version, instructions } = this.#options
    return {
      protocolVersion: VERSIONS.find((known) => known === requested) ?? LATEST,
      capabilities: { tools: {} },
      serverInfo: { name, version },
      instructions,
    }
  }

  #call(id: McpId, params: Json): readonly McpEffect[] {
    const { name, arguments: args = {} } = params
    const tool = this.#options.tools.find((each) => each.name === name)
    if (tool === undefined) return [sendError(id, INVALID_PARAMS, 'No such tool')]
    if (!isRecord(args)) return [sendError(id, INVALID_PARAMS, '"arguments" is not an object')]
    if (this.#pending.has(id))
      return [sendError(id, INVALID_REQUEST, 'A call with this id has not been answered')]
    if (this.#pending.size >= MAX_PENDING_CALLS)
      return [sendError(id, TOO_MANY_CALLS, `Only ${MAX_PENDING_CALLS} calls at a time are accepted`)]
    this.#pending.add(id)
    return [{ kind: 'call', id, tool: tool.name, args }]
  }
}

function describeTool({ name, title, description, inputSchema, isReadOnly }: McpTool): Json {
  return { name, title, description, inputSchema, annotations: { title, readOnlyHint: isReadOnly } }
}

function send(message: Json): McpEffect {
  return { kind: 'send', line: JSON.stringify({ jsonrpc: '2.0', ...message }) }
}

function sendResult(id: McpId, result: Json): McpEffect {
  return send({ id, result })
}

function sendError(id: McpId | null, code: number, message: string): McpEffect {
  return send({ id, error: { code, message } })
}
