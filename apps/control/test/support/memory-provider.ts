import type { HostHealth, SandboxStatus, StartSpec } from '@sandwire/internal-api'
import { SandwireError, type StopReason } from '@sandwire/protocol'
import type { Provider, Survival, UpstreamRequest } from '../../src/providers/provider.ts'

/** A provider whose sandboxes are entries in a map and whose sandboxd is a function. */
export class MemoryProvider implements Provider {
  readonly survives: Survival
  deliversStopReason = true
  readonly sandboxes = new Map<string, SandboxStatus>()
  /** Durations of all renewals. */
  readonly renewals: number[] = []
  starts = 0
  stops = 0
  readonly reasons: StopReason[] = []
  /** Thrown by the next start or stop. */
  failure: SandwireError | undefined
  /** A start waits for it. */
  gate: Promise<void> = Promise.resolve()
  answer: (request: UpstreamRequest) => Response = () => Response.json({})
  #starting: Promise<SandboxStatus> | undefined

  constructor(stop: Survival['stop'] = 'files') {
    this.survives = { detach: 'processes', stop, upgrade: 'processes' }
  }

  start({ id }: StartSpec): Promise<SandboxStatus> {
    const known = this.sandboxes.get(id)
    if (known?.state === 'running') return Promise.resolve(known)
    this.#starting ??= this.#start(id).finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  async status(id: string): Promise<SandboxStatus> {
    return this.sandboxes.get(id) ?? { id, state: 'absent' }
  }

  async stop(id: string, _requestId: string, reason: StopReason = 'requested'): Promise<SandboxStatus> {
    this.#fail()
    if (this.sandboxes.get(id)?.state === 'running') {
      this.stops += 1
      this.reasons.push(reason)
    }
    const status: SandboxStatus = { id, state: 'stopped' }
    this.sandboxes.set(id, status)
    return status
  }

  async destroy(id: string): Promise<void> {
    this.sandboxes.delete(id)
  }

  async disconnectAll(): Promise<void> {
    // There are no connections.
  }

  async renew(_id: string, forMs: number): Promise<void> {
    this.renewals.push(forMs)
  }

  async logs(): Promise<string> {
    return ''
  }

  async health(): Promise<HostHealth> {
    return { status: 'ok', version: '0', isolation: 'none', sandboxes: this.sandboxes.size }
  }

  async fetch(address: string, request: UpstreamRequest): Promise<Response> {
    const isUp = [...this.sandboxes.values()].some(
      (status) => status.state === 'running' && status.address === address,
    )
    if (!isUp) throw new SandwireError('sandbox_unreachable', 'The sandbox does not answer')
    return this.answer(request)
  }

  async #start(id: string): Promise<SandboxStatus> {
    await this.gate
    this.#fail()
    this.starts += 1
    const epoch = String(this.starts)
    const status: SandboxStatus = {
      id,
      state: 'running',
      address: `slot:${this.starts}`,
      epoch,
      startedMs: 0,
    }
    this.sandboxes.set(id, status)
    return status
  }

  #fail(): void {
    const { failure } = this
    this.failure = undefined
    if (failure !== undefined) throw failure
  }
}
