import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Conversation, Fault, ModelRequest, Reply, Script } from './script.ts'

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  500: 'api_error',
  529: 'overloaded_error',
}

/** The format of a model API. */
export interface ModelApi {
  /** Paths whose requests the script answers. */
  readonly path: string
  /** Other paths with a fixed answer. */
  readonly fixed: Readonly<Record<string, unknown>>
  readonly readConversation: (body: Readonly<Record<string, unknown>>) => Conversation
  readonly formatMessage: (id: string, model: string, reply: Reply) => unknown
  /** Texts of the events of a stream. */
  readonly streamMessage: (
    id: string,
    request: Pick<ModelRequest, 'model' | 'body'>,
    reply: Reply,
  ) => Iterable<string>
  readonly formatErrorEvent: (error: Readonly<Record<string, unknown>>) => string
}

export interface FakeModelOptions {
  readonly script: Script
  /** Listening address; default: a free port of 127.0.0.1. */
  readonly port?: number
  readonly hostname?: string
  /** The only key that is accepted, as `x-api-key` or bearer; default: any. */
  readonly key?: string
}

/** A scripted model API. */
export interface FakeModel extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** All requests so far, in order. */
  readonly requests: readonly ModelRequest[]
  /** Requests that are being answered. */
  readonly active: number
  /** Replaces the script. */
  use(script: Script): void
}

function headersOf(request: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}

async function readBody(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk as Uint8Array)
  const text = Buffer.concat(chunks).toString()
  return text === '' ? {} : (JSON.parse(text) as Readonly<Record<string, unknown>>)
}

function sendError(
  response: ServerResponse,
  status: number,
  fault: Partial<Extract<Fault, { kind: 'status' }>> = {},
) {
  const { type = ERROR_TYPES[status] ?? 'api_error', message = `Scripted ${status}`, headers = {} } = fault
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify({ type: 'error', error: { type, message } }))
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

interface Answer {
  readonly api: ModelApi
  readonly id: string
  readonly request: ModelRequest
  readonly reply: Reply
}

async function sendStream(response: ServerResponse, { api, id, request, reply }: Answer): Promise<void> {
  const { fault, delayMs = 0 } = reply
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  let sent = 0
  for (const event of api.streamMessage(id, request, reply)) {
    if (fault?.kind === 'cut' && sent >= fault.afterEvents) return void response.destroy()
    if (fault?.kind === 'error_event' && sent >= fault.afterEvents) {
      const error = { type: fault.type ?? 'overloaded_error', message: 'Scripted error' }
      return void response.end(api.formatErrorEvent(error))
    }
    if (delayMs > 0) await pause(delayMs)
    if (response.destroyed) return
    const hasRoom = response.write(event)
    if (!hasRoom) await new Promise<void>((resolve) => response.once('drain', resolve).once('close', resolve))
    sent++
  }
  response.end()
}

async function sendWhole(response: ServerResponse, { api, id, request, reply }: Answer): Promise<void> {
  if (reply.delayMs !== undefined) await pause(reply.delayMs)
  const text = JSON.stringify(api.formatMessage(id, request.model, reply))
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  if (reply.fault?.kind === 'cut') {
    response.write(text.slice(0, text.length / 2))
    return void response.destroy()
  }
  response.end(text)
}

/** Answers requests from a script, streamed or not, with faults on demand. */
class FakeModelServer implements FakeModel {
  readonly requests: ModelRequest[] = []
  active = 0
  readonly #server: Server
  readonly #api: ModelApi
  readonly #options: FakeModelOptions
  #script: Script

  constructor(api: ModelApi, options: FakeModelOptions) {
    this.#api = api
    this.#options = options
    this.#script = options.script
    this.#server = createServer((request, response) => {
      this.active++
      response.once('close', () => this.active--)
      this.#answer(request, response).catch((error: unknown) => {
        if (response.headersSent) response.destroy()
        else sendError(response, 500, { message: String(error) })
      })
    })
  }

  async listen(): Promise<void> {
    const { port = 0, hostname = '127.0.0.1' } = this.#options
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, hostname, resolve)
    })
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('The fake API is not listening')
    return address.port
  }

  get url(): string {
    return `http://${this.#options.hostname ?? '127.0.0.1'}:${this.port}`
  }

  use(script: Script): void {
    this.#script = script
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const headers = headersOf(request)
    const path = request.url ?? '/'
    const { pathname } = new URL(path, 'http://fake')
    if (request.method !== 'POST') return sendError(response, pathname === '/api/hello' ? 200 : 404)
    const body = await readBody(request)
    const model: ModelRequest = {
      method: 'POST',
      path,
      headers,
      body,
      index: this.requests.length,
      ...this.#api.readConversation(body),
    }
    this.requests.push(model)
    const { key } = this.#options
    if (key !== undefined && headers['x-api-key'] !== key && headers['authorization'] !== `Bearer ${key}`)
      return sendError(response, 401)
    const fixed = this.#api.fixed[pathname]
    if (fixed !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(JSON.stringify(fixed))
    }
    if (pathname !== this.#api.path) return sendError(response, 404)
    await this.#reply(model, response)
  }

  async #reply(request: ModelRequest, response: ServerResponse): Promise<void> {
    const reply = await this.#script(request)
    const { fault } = reply
    if (fault?.kind === 'status') return sendError(response, fault.status, fault)
    if (fault?.kind === 'raw') {
      response.writeHead(fault.status, { ...fault.headers })
      return void response.end(fault.body)
    }
    if (fault?.kind === 'hang') return
    const send = request.isStreamed ? sendStream : sendWhole
    await send(response, { api: this.#api, id: `msg_fake_${request.index}`, request, reply })
  }
}

export async function openFakeModel(api: ModelApi, options: FakeModelOptions): Promise<FakeModel> {
  const server = new FakeModelServer(api, options)
  await server.listen()
  return server
}
