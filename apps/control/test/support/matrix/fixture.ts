import { eventually, type RawHandshake } from '@sandwire/testing'
import { type RunningControl, startControl } from '../control.ts'
import { upgrade } from '../handshake.ts'
import { JWT_SECRET, ApiClient, textIn, type ApiResponse, tokenOf, UNLIMITED } from '../api-client.ts'
import { RealSandboxes } from '../real-sandboxes.ts'
import { helloText } from '../wire.ts'
import { CREDENTIALS, type CredentialKind, type CallerKind } from './rules.ts'
import type { MatrixRequest, Target } from './verbs.ts'
import { fieldOf } from '../json.ts'

/** The result of a request, without values that differ between runs. */
export interface MatrixResult {
  /** `allowed`, or the code of the refusal. */
  readonly outcome: string
  /** Status, headers and body, or the frames of a socket. */
  readonly seen: unknown
}

const TEMPLATE = { id: 'nothing', title: 'Nothing', argv: ['true'] }
/** Headers that differ between identical requests. */
const VARYING_HEADERS = ['x-request-id', 'date', 'content-length', 'sec-websocket-accept']

function codeOf(body: unknown): string | undefined {
  const error: unknown = fieldOf(body, 'error')
  const code: unknown = fieldOf(error, 'code')
  return typeof code === 'string' ? code : undefined
}

function stableHeaders(headers: Headers): unknown {
  return [...headers].filter(([name]) => !VARYING_HEADERS.includes(name))
}

/** Removes the request id, so that two errors can be compared. */
function withoutRequestId(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body).replaceAll(/"request_id":"[^"]*"/g, '"request_id":"-"'))
}

/** A control with real sandboxes that accounts own, share and lose access to. */
export class MatrixFixture implements AsyncDisposable {
  readonly control: RunningControl
  readonly #sandboxes: RealSandboxes
  #count = 0

  private constructor(control: RunningControl, sandboxes: RealSandboxes) {
    this.control = control
    this.#sandboxes = sandboxes
  }

  static async open(): Promise<MatrixFixture> {
    const sandboxes = new RealSandboxes()
    const config = {
      // An open server has no guests.
      mode: 'open',
      localTokenSha256: undefined,
      limits: UNLIMITED,
      commands: { templates: [TEMPLATE] },
    }
    const bindings = { JWT_SECRET, ANTHROPIC_API_KEY: 'sk-ant-test' }
    const control = await startControl({ runner: sandboxes, config, bindings })
    // Runs need sandboxes with a port of their own.
    control.host.isolation = 'bubblewrap'
    return new MatrixFixture(control, sandboxes)
  }

  /** A caller with a credential; `none` has none. Another name is another account. */
  async client(
    kind: CallerKind,
    credential: CredentialKind = 'all scopes',
    name: string = kind,
  ): Promise<ApiClient> {
    const scope = CREDENTIALS[credential].map((each) => `sandbox:${each}`).join(' ')
    const bearer = kind === 'none' ? undefined : await tokenOf(name, { scope })
    return new ApiClient(this.control, bearer)
  }

  /** A running sandbox with a session, shared with each kind of caller. */
  async createTarget(): Promise<Target> {
    this.#count += 1
    const owner = await this.client('owner')
    const sandbox = textIn(
      await expectSuccess(owner.post('/api/sandboxes', { name: `target-${this.#count}` })),
      'id',
    )
    const begun = await expectSuccess(
      owner.post(`/api/sandboxes/${sandbox}/sessions`, { cmd: 'cat', keep: 3_600, mode: 'pty' }),
    )
    const session = textIn(begun, 'id')
    const give = async (kind: CallerKind, request: object): Promise<string> => {
      const account = textIn(await expectSuccess((await this.client(kind)).get('/api/whoami')), 'account')
      return textIn(await expectSuccess(owner.post('/api/grants', { ...request, account })), 'grant')
    }
    const grant = await give('collaborator', { sandbox, role: 'collaborator' })
    await give('viewer', { sandbox, role: 'viewer' })
    await give('session guest', { session, role: 'viewer' })
    const taken = await give('revoked', { sandbox, role: 'collaborator' })
    await expectSuccess(owner.delete(`/api/grants/${taken}`))
    const run = textIn(await expectSuccess(owner.post('/api/runs', { sandbox, task: 'x' })), 'id')
    await eventually(async () => textIn(await owner.get(`/api/runs/${run}`), 'state') === 'ended', {
      what: 'the run to end',
      intervalMs: 50,
    })
    const begunConversation = await expectSuccess(owner.post('/api/conversations', { sandbox }))
    return { sandbox, session, grant, run, conversation: textIn(begunConversation, 'id') }
  }

  async removeTarget({ sandbox }: Target): Promise<void> {
    await (await this.client('owner')).delete(`/api/sandboxes/${sandbox}`)
  }

  /** Sends a request and returns its result. */
  async request(
    method: string,
    { path, json, socket, streams }: MatrixRequest,
    caller: ApiClient,
  ): Promise<MatrixResult> {
    if (streams === true) return resultOf(await caller.begin(method, path))
    if (socket === 'bearer') return this.#attach(path, caller.headers, [])
    if (socket === 'text') return this.#openText(path, caller.headers)
    if (socket === 'compat') return this.#openCompat(path, caller.headers)
    if (socket === undefined) return resultOf(await caller.request(method, path, json))
    const given = await caller.post('/api/tickets', socket.ticketFor)
    if (given.status !== 201) return resultOf(given)
    return this.#attach(path, [], [`sandwire.ticket.${textIn(given, 'ticket')}`])
  }

  async #attach(
    path: string,
    headers: readonly (readonly [string, string])[],
    subprotocols: readonly string[],
  ): Promise<MatrixResult> {
    const handshake = await upgrade(this.control, path, {
      headers,
      subprotocols: ['sandwire.v1', ...subprotocols],
    })
    if (handshake.kind !== 'open') return handshakeResult(handshake)
    await using socket = handshake.socket
    await socket
      .sendFrame({ opcode: 1, payload: new TextEncoder().encode(helloText()) })
      .catch(() => undefined)
    const frame: unknown = JSON.parse(new TextDecoder().decode((await socket.nextFrame()).payload))
    const code: unknown = fieldOf(frame, 'code')
    const seen = [socket.response.status, stableHeaders(socket.response.headers), frame]
    socket.reset()
    return { outcome: typeof code === 'string' ? code : 'allowed', seen }
  }

  /** Opens a compat terminal: its first message, and the reason of a close. */
  async #openCompat(path: string, headers: readonly (readonly [string, string])[]): Promise<MatrixResult> {
    const handshake = await upgrade(this.control, path, { headers })
    if (handshake.kind !== 'open') return handshakeResult(handshake)
    await using socket = handshake.socket
    const frame: unknown = JSON.parse(new TextDecoder().decode((await socket.nextFrame()).payload))
    const isOpen = ['session', 'connected'].includes(String(fieldOf(frame, 'type')))
    // The reason follows the two bytes of the code.
    const reason = isOpen ? '' : new TextDecoder().decode((await socket.nextFrame()).payload.subarray(2))
    socket.reset()
    const seen = [socket.response.status, stableHeaders(socket.response.headers), frame, reason]
    return { outcome: isOpen ? 'allowed' : reason, seen }
  }

  /** Opens a text terminal: its first message, and the reason of a close. */
  async #openText(path: string, headers: readonly (readonly [string, string])[]): Promise<MatrixResult> {
    const handshake = await upgrade(this.control, path, { headers })
    if (handshake.kind !== 'open') return handshakeResult(handshake)
    await using socket = handshake.socket
    const text = new TextDecoder().decode((await socket.nextFrame()).payload)
    const isOpen = text === '\u001bc'
    const reason = isOpen ? '' : new TextDecoder().decode((await socket.nextFrame()).payload.subarray(2))
    socket.reset()
    const seen = [socket.response.status, stableHeaders(socket.response.headers), text, reason]
    return { outcome: isOpen ? 'allowed' : reason, seen }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.control[Symbol.asyncDispose]()
    await this.#sandboxes[Symbol.asyncDispose]()
  }
}

function handshakeResult(handshake: Exclude<RawHandshake, { kind: 'open' }>): MatrixResult {
  if (handshake.kind === 'ended') throw new Error(`The connection ended: ${JSON.stringify(handshake.how)}`)
  const body: unknown = JSON.parse(handshake.body)
  const seen = [handshake.status, stableHeaders(handshake.headers), withoutRequestId(body)]
  return { outcome: codeOf(body) ?? String(handshake.status), seen }
}

async function expectSuccess(requested: Promise<ApiResponse>): Promise<ApiResponse> {
  const response = await requested
  if (response.status >= 300) throw new Error(`Cannot prepare the fixture: ${JSON.stringify(response.body)}`)
  return response
}

function resultOf({ status, headers, body }: ApiResponse): MatrixResult {
  // Compat bodies have no code.
  const code = codeOf(body) ?? headers.get('x-sandwire-code')
  const outcome = status < 400 ? 'allowed' : (code ?? String(status))
  return { outcome, seen: [status, stableHeaders(headers), withoutRequestId(body ?? null)] }
}
