import type { SandboxStatus, StartSpec } from '@sandwire/internal-api'
import type { StopReason } from '@sandwire/protocol'
import type { SandboxManager } from './sandboxes/sandbox-manager.ts'

/** Keeps sandboxes in a map and records calls. */
export class FakeSandboxManager implements SandboxManager {
  readonly isolation = 'bubblewrap'
  readonly calls: string[] = []
  /** Reasons of the stops. */
  readonly stops: StopReason[] = []
  readonly #sandboxes = new Map<string, SandboxStatus>()
  /** Thrown by the next start. */
  failure: Error | undefined

  async start({ id }: StartSpec): Promise<SandboxStatus> {
    this.calls.push(`start ${id}`)
    if (this.failure !== undefined) throw this.failure
    const status = { id, state: 'running', address: 'slot:0', epoch: 'e', startedMs: 1 } as const
    this.#sandboxes.set(id, status)
    return status
  }

  async status(id: string): Promise<SandboxStatus> {
    return this.#sandboxes.get(id) ?? { id, state: 'absent' }
  }

  runningIds(): readonly string[] {
    return [...this.#sandboxes.values()].filter(({ state }) => state === 'running').map(({ id }) => id)
  }

  async list(): Promise<readonly SandboxStatus[]> {
    return [...this.#sandboxes.values()]
  }

  async stop(id: string, reason: StopReason): Promise<SandboxStatus> {
    this.calls.push(`stop ${id}`)
    this.stops.push(reason)
    const status = { id, state: 'stopped' } as const
    this.#sandboxes.set(id, status)
    return status
  }

  async destroy(id: string): Promise<void> {
    this.calls.push(`destroy ${id}`)
    this.#sandboxes.delete(id)
  }

  async disconnect(id: string): Promise<void> {
    this.calls.push(`disconnect ${id}`)
  }

  async readLog(_id: string, maxBytes: number): Promise<string> {
    return `{"bytes":${maxBytes}}\n`
  }

  async adopt(): Promise<readonly SandboxStatus[]> {
    return this.list()
  }

  async claim(id: string): Promise<void> {
    this.calls.push(`claim ${id}`)
    if (this.failure !== undefined) throw this.failure
  }

  async close(): Promise<void> {
    this.calls.push('close')
  }
}
