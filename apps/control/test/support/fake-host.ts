import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import {
  formatSlotAddress,
  type HostHealth,
  type SandboxStatus,
  parseSlotAddress,
  type StartSpec,
} from '@sandwire/internal-api'

type Served = (request: Request, requestId: string | null) => Response | Promise<Response> | undefined

/** Starts and stops the sandboxes of a fake host. */
export interface SandboxRunner {
  /** Returns the Unix socket of the sandbox's sandboxd. */
  start(spec: StartSpec): Promise<string>
  stop(id: string): Promise<void>
}

/** Enough for any test. */
const SLOTS = 16

/** A host API over a unix socket that keeps its sandboxes in memory. */
export class FakeHost implements AsyncDisposable {
  readonly socket: string
  /** Calls in order, such as `PUT /sandboxes/abc`. */
  readonly calls: string[] = []
  readonly requestIds: (string | null)[] = []
  readonly specs = new Map<string, StartSpec>()
  /** Codes that can be redeemed once. */
  readonly codes = new Set<string>()
  readonly sandboxes = new Map<string, SandboxStatus>()
  /** Control caches it from its first request on. */
  isolation: HostHealth['isolation'] = 'none'
  /** Responds instead of the host while set; undefined falls through. */
  intercept: Served | undefined
  readonly #server: ReturnType<typeof Bun.serve>
  readonly #runner: SandboxRunner
  /** Sockets of the slots, in their order. */
  readonly slots: readonly string[]
  readonly #starting = new Map<string, Promise<SandboxStatus>>()
  #epochs = 0

  constructor(socket: string, runner: SandboxRunner) {
    this.socket = socket
    this.#runner = runner
    const folder = `${socket}.slots`
    mkdirSync(folder)
    this.slots = Array.from({ length: SLOTS }, (_, slot) => path.join(folder, String(slot)))
    this.#server = Bun.serve({
      unix: socket,
      development: false,
      fetch: (request) => this.#serve(request),
      error: () => new Response('broken', { status: 500 }),
    })
  }

  count(call: string): number {
    return this.calls.filter((made) => made === call).length
  }

  /** Assigns a socket to a free slot and returns its address. */
  lead(socket: string): string {
    const taken = new Set([...this.sandboxes.values()].map((each) => 'address' in each && each.address))
    const slot = this.slots.findIndex((_, each) => !taken.has(formatSlotAddress(each)))
    const link = this.slots[slot] ?? ''
    rmSync(link, { force: true })
    symlinkSync(socket, link)
    return formatSlotAddress(slot)
  }

  /** Swaps the sockets of two slots. */
  swap(one: string, two: string): void {
    const [first, second] = [one, two].map((address) => this.slots[parseSlotAddress(address) ?? -1] ?? '')
    if (first === undefined || second === undefined) return
    const aside = `${first}.aside`
    renameSync(first, aside)
    renameSync(second, first)
    renameSync(aside, second)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true)
    for (const each of [this.socket, `${this.socket}.slots`]) rmSync(each, { recursive: true, force: true })
  }

  async #serve(request: Request): Promise<Response> {
    const url = new URL(request.url)
    const [, folder, id = '', verb] = url.pathname.split('/')
    this.calls.push(`${request.method} ${url.pathname}`)
    this.requestIds.push(request.headers.get('x-request-id'))
    const intercepted = await this.intercept?.(request, request.headers.get('x-request-id'))
    if (intercepted !== undefined) return intercepted
    if (url.pathname === '/health')
      return Response.json({
        status: 'ok',
        version: '0',
        isolation: this.isolation,
        sandboxes: this.sandboxes.size,
      })
    if (url.pathname === '/running') {
      const running = [...this.sandboxes.values()].filter(({ state }) => state === 'running')
      return Response.json({ ids: running.map(({ id: each }) => each) })
    }
    if (folder === 'agents') return Response.json({ state: 'installed', version: '0' })
    if (url.pathname === '/signin/redeem') return this.#redeem(await request.json())
    if (folder !== 'sandboxes' || id === '') return new Response(null, { status: 404 })
    if (verb === 'logs') return new Response('{"event":"line"}\n')
    if (verb === 'disconnect') return new Response(null, { status: 204 })
    if (request.method === 'PUT') return Response.json(await this.#start((await request.json()) as StartSpec))
    if (verb === 'stop') return Response.json(await this.#stop(id))
    if (request.method === 'DELETE') {
      await this.#stop(id)
      this.sandboxes.delete(id)
      return new Response(null, { status: 204 })
    }
    return Response.json(this.sandboxes.get(id) ?? { id, state: 'absent' })
  }

  #redeem(body: unknown): Response {
    const code = typeof body === 'object' && body !== null && 'code' in body ? String(body.code) : ''
    return this.codes.delete(code)
      ? new Response(null, { status: 204 })
      : Response.json({ error: { code: 'unauthorized', message: 'no' } }, { status: 401 })
  }

  async #start(spec: StartSpec): Promise<SandboxStatus> {
    const known = this.sandboxes.get(spec.id)
    if (known?.state === 'running') return known
    const started = this.#starting.get(spec.id) ?? this.#bringUp(spec)
    this.#starting.set(spec.id, started)
    try {
      return await started
    } finally {
      this.#starting.delete(spec.id)
    }
  }

  async #bringUp(spec: StartSpec): Promise<SandboxStatus> {
    this.specs.set(spec.id, spec)
    const address = this.lead(await this.#runner.start(spec))
    this.#epochs += 1
    const status: SandboxStatus = {
      id: spec.id,
      state: 'running',
      address,
      epoch: `epoch-${this.#epochs}`,
      startedMs: Date.now(),
    }
    this.sandboxes.set(spec.id, status)
    return status
  }

  async #stop(id: string): Promise<SandboxStatus> {
    const known = this.sandboxes.get(id)
    if (known === undefined) return { id, state: 'absent' }
    if (known.state === 'running') {
      await this.#runner.stop(id)
      rmSync(this.slots[parseSlotAddress(known.address) ?? -1] ?? '', { force: true })
    }
    const status: SandboxStatus = { id, state: 'stopped' }
    this.sandboxes.set(id, status)
    return status
  }
}
