/** The part of a Durable Object's `ctx.container` that the provider uses. */
export interface Engine {
  readonly running: boolean
  start(options: EngineStart): void
  /** Settles when the container ends; rejects with the `exitCode` that is not 0. */
  monitor(): Promise<void>
  destroy(): Promise<void>
  signal(number: number): void
  getTcpPort(port: number): { fetch(url: string, init: RequestInit): Promise<Response> }
  /** How long the container may live without its object. */
  setInactivityTimeout(durationMs: number): Promise<void>
}

export interface EngineStart {
  readonly enableInternet: boolean
  readonly env: Record<string, string>
}

/** How a container ended, in the words that the host uses too. */
export function reasonOfEnd(caught: unknown): string {
  const code: unknown = typeof caught === 'object' && caught !== null ? Reflect.get(caught, 'exitCode') : null
  return typeof code === 'number' ? `exit_${code}` : 'lost'
}
