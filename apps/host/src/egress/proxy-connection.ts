import { EGRESS_PROXY_HEADER } from '@sandwire/internal-api'
import {
  type BlockReason,
  explainBlock,
  formatHost,
  type Scheme,
  type Target,
} from '@sandwire/network-policy'
import type { ConnectionGroup, GroupedConnection } from './connection-group.ts'
import { findHeadEnd } from './message-head.ts'
import { SocketWriter, type PeerSocket } from './socket-writer.ts'
import { type ProxyRequest, readProxyRequest, type RequestSource } from './proxy-request.ts'
import type { ConnectResult } from './connect-target.ts'
import { ResponseHead } from './response-head.ts'

const MAX_HEAD_BYTES = 16 * 1024
/** Time for a blocked client to read the response. */
const LINGER_MS = 2_000

/** The proxy, as its connections use it. */
export interface ConnectionOwner {
  readonly headTimeoutMs: number
  readonly source: RequestSource
  /** The connections of a sandbox; undefined is the only sandbox of this proxy. */
  readonly groupOf: (sandbox: string | undefined) => ConnectionGroup
  readonly connect: (target: ConnectTarget, signal: AbortSignal) => Promise<ConnectResult>
  readonly blocked: (target: Target, reason: BlockReason) => void
  readonly moved: (direction: 'sent' | 'received', bytes: number) => void
  /** The client has left, and no attempt to connect for it is under way. */
  readonly closed: (connection: ProxyConnection) => void
}

type ConnectTarget = Target & { readonly scheme?: Scheme }

type AcceptedRequest = Exclude<ProxyRequest, { kind: 'bad' }>

const STATUS_TEXT = {
  400: 'Bad Request',
  403: 'Forbidden',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
} as const
type Status = keyof typeof STATUS_TEXT

/** A response of the proxy itself: one line of text. */
function formatResponse(status: Status, line: string, reason?: BlockReason): Buffer {
  const body = `${line}\n`
  return Buffer.from(
    `HTTP/1.1 ${status} ${STATUS_TEXT[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${body.length}\r\n${EGRESS_PROXY_HEADER}: ${reason === undefined ? status : `blocked:${reason}`}\r\n` +
      `Connection: close\r\n\r\n${body}`,
    'latin1',
  )
}

/** One connection from a sandbox: one request, then bytes in both directions until both sides have ended. */
export class ProxyConnection implements GroupedConnection {
  /** Time of the last bytes, on the monotonic clock. */
  activeMs = performance.now()
  readonly #client: PeerSocket
  readonly #owner: ConnectionOwner
  readonly #toClient: SocketWriter
  /** Aborts the attempt to connect when the client leaves. */
  readonly #left = new AbortController()
  #group: ConnectionGroup | undefined
  #isConnecting = false
  #isClientClosed = false
  #target: PeerSocket | undefined
  #toTarget: SocketWriter | undefined
  /** `head`: reading the request; `opening`: connecting, client paused when it sends more; `open`: forwarding; `closing`: sending an error. */
  #state: 'head' | 'opening' | 'open' | 'closing' | 'closed' = 'head'
  /** The incomplete head; while opening, the bytes after it. */
  #early: Buffer = Buffer.alloc(0)
  /** Undefined while the head is read. */
  #request: AcceptedRequest | undefined
  #response: ResponseHead | undefined
  #hasClientEnded = false
  #hasTargetEnded = false
  /** The target no longer accepts bytes, so the client's are dropped. */
  #isTargetGone = false
  /** Deadline for the head; later, for the client to read an error. */
  #deadline: Timer

  constructor(client: PeerSocket, owner: ConnectionOwner) {
    this.#client = client
    this.#owner = owner
    this.#toClient = new SocketWriter(client, {
      onWritable: () => this.#target?.resume(),
      onHeld: (delta) => this.#group?.changeHeldBytes(delta),
    })
    this.#deadline = setTimeout(
      () => this.#answer(408, 'Sandwire proxy: the request took too long'),
      owner.headTimeoutMs,
    )
  }

  get heldBytes(): number {
    return this.#early.length + this.#toClient.heldBytes + (this.#toTarget?.heldBytes ?? 0)
  }

  /** Counts this connection as one of its sandbox, and refuses it when there are too many. */
  join(group: ConnectionGroup): boolean {
    this.#group = group
    group.changeHeldBytes(this.heldBytes)
    if (group.add(this)) return true
    this.#answer(503, 'Sandwire proxy: this sandbox has too many connections open')
    return false
  }

  /** Leaves its group. */
  leave(): void {
    this.#group?.delete(this)
  }

  /** Bytes from the client. */
  received(bytes: Buffer): void {
    this.activeMs = performance.now()
    if (this.#state === 'open') this.#send(bytes)
    else if (this.#state === 'head' || this.#state === 'opening') {
      this.#setEarly(Buffer.concat([this.#early, bytes]))
      if (this.#state === 'head') this.#readHead(this.#early.length - bytes.length)
      else this.#client.pause()
    }
  }

  drained(): void {
    this.#toClient.drained()
    this.#closeIfDone()
  }

  /** The client sends nothing more. */
  ended(): void {
    this.#hasClientEnded = true
    if (this.#state === 'head') this.terminate()
    if (this.#state === 'open') this.#toTarget?.end()
    this.#closeIfDone()
  }

  /** The client's socket is closed. */
  clientClosed(): void {
    this.#isClientClosed = true
    this.#release()
    this.#closeIfLeft()
  }

  terminate(): void {
    this.#release()
    this.#client.terminate()
  }

  #release(): void {
    this.#state = 'closed'
    clearTimeout(this.#deadline)
    this.#left.abort()
    this.#setEarly(Buffer.alloc(0))
    this.#toClient.discard()
    this.#toTarget?.discard()
    this.#target?.terminate()
  }

  #setEarly(bytes: Buffer): void {
    const delta = bytes.length - this.#early.length
    this.#early = bytes
    this.#group?.changeHeldBytes(delta)
  }

  #closeIfLeft(): void {
    if (this.#isClientClosed && !this.#isConnecting) this.#owner.closed(this)
  }

  #readHead(from: number): void {
    const end = findHeadEnd(this.#early, from)
    if ((end ?? this.#early.length) > MAX_HEAD_BYTES) {
      this.#answer(431, 'Sandwire proxy: the request headers are too large')
      return
    }
    if (end === undefined) return
    const request = readProxyRequest(this.#early.subarray(0, end), this.#owner.source)
    if (request.kind === 'bad') {
      this.#answer(400, request.message)
      return
    }
    clearTimeout(this.#deadline)
    if (request.kind === 'forward' && request.sandbox !== undefined)
      if (!this.join(this.#owner.groupOf(request.sandbox))) return
    this.#setEarly(this.#early.subarray(end))
    // Otherwise not paused: a paused socket does not report that the client left.
    if (this.#early.length > 0) this.#client.pause()
    this.#request = request
    this.#state = 'opening'
    this.#isConnecting = true
    void this.#connect(request)
  }

  async #connect(request: AcceptedRequest): Promise<void> {
    try {
      this.#result(request, await this.#owner.connect(request.target, this.#left.signal))
    } catch {
      this.#unreachable(request.target, 'the connection failed')
    }
    this.#isConnecting = false
    this.#closeIfLeft()
  }

  #result(request: AcceptedRequest, result: ConnectResult): void {
    if (this.#state !== 'opening') {
      if (result.kind === 'open') result.socket.terminate()
      return
    }
    switch (result.kind) {
      case 'blocked':
        this.#owner.blocked(request.target, result.reason)
        this.#answer(403, explainBlock(result.reason, request.target), result.reason)
        return
      case 'failed':
        this.#unreachable(request.target, result.message)
        return
      case 'open':
        this.#open(request, result)
    }
  }

  #unreachable({ host, port }: Target, why: string): void {
    if (this.#state === 'opening')
      this.#answer(502, `Sandwire proxy: cannot connect to ${formatHost(host)}:${port}: ${why}`)
  }

  #open(request: AcceptedRequest, { socket, events }: Extract<ConnectResult, { kind: 'open' }>): void {
    this.#state = 'open'
    this.#target = socket
    this.#toTarget = new SocketWriter(socket, {
      onWritable: () => this.#client.resume(),
      onHeld: (delta) => this.#group?.changeHeldBytes(delta),
    })
    if (request.kind === 'tunnel')
      this.#toClient.write(Buffer.from('HTTP/1.1 200 Connection established\r\n\r\n'))
    else {
      this.#response = new ResponseHead({ isUpgrade: request.isUpgrade })
      this.#toTarget.write(request.head)
      if (request.expectsContinue) this.#toClient.write(Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'))
    }
    this.#client.resume()
    const early = this.#early
    this.#setEarly(Buffer.alloc(0))
    this.#send(early)
    if (this.#hasClientEnded) this.#toTarget.end()
    events.listen({
      data: (bytes) => this.#receive(bytes),
      drained: () => {
        this.#toTarget?.drained()
        this.#closeIfDone()
      },
      ended: () => this.#targetEnded(),
      closed: () => {
        this.#isTargetGone = true
        this.#targetEnded()
      },
      broke: () => this.#targetFailed(),
    })
    socket.resume()
  }

  /** Client to target. Bytes after the request body are dropped. */
  #send(bytes: Buffer): void {
    const request = this.#request
    const isBody = request?.kind === 'forward' && this.#response?.isSwitched !== true
    const taken = isBody ? request.body.take(bytes) : bytes.length
    if (taken === undefined) {
      this.terminate()
      return
    }
    this.#toTarget?.write(bytes.subarray(0, taken))
    this.#owner.moved('sent', taken)
    if ((this.#toTarget?.heldBytes ?? 0) > 0) this.#client.pause()
  }

  /** Target to client. */
  #receive(bytes: Buffer): void {
    if (this.#state !== 'open') return
    this.activeMs = performance.now()
    const passed = this.#response === undefined ? bytes : this.#response.take(bytes)
    if (passed === undefined) {
      this.#answer(502, 'Sandwire proxy: the response is not HTTP/1.1')
      this.#target?.terminate()
      return
    }
    this.#toClient.write(passed)
    this.#owner.moved('received', bytes.length)
    if (this.#toClient.heldBytes > 0) this.#target?.pause()
  }

  #targetEnded(): void {
    if (this.#state !== 'open') return
    this.#hasTargetEnded = true
    if (this.#response?.isComplete === false) this.#answer(502, 'Sandwire proxy: the target sent no response')
    this.#toClient.end()
    this.#closeIfDone()
  }

  #targetFailed(): void {
    if (this.#state === 'open') this.terminate()
  }

  /** Sends one line and closes. Further client bytes are read and dropped, so that a reset does not discard the line. */
  #answer(status: Status, line: string, reason?: BlockReason): void {
    if (this.#state === 'closed' || this.#state === 'closing') return
    clearTimeout(this.#deadline)
    this.#state = 'closing'
    this.#setEarly(Buffer.alloc(0))
    this.#client.resume()
    this.#toClient.write(formatResponse(status, line, reason))
    this.#toClient.end()
    this.#deadline = setTimeout(() => this.terminate(), LINGER_MS)
    this.#closeIfDone()
  }

  #closeIfDone(): void {
    const isNothingAwaited = this.#hasClientEnded || this.#isTargetGone || this.#request?.kind === 'forward'
    if (this.#toClient.isDone && isNothingAwaited) this.#client.end()
    if (this.#toTarget?.isDone === true && this.#hasTargetEnded) this.#target?.end()
  }
}
