import { SandwireError } from '@sandwire/protocol'

/** Long enough for an engine that removes many containers at once. */
const CALL_TIMEOUT_MS = 30_000

/** A container, as far as it matters here. */
export interface FoundContainer {
  readonly name: string
  readonly isRunning: boolean
}

/** Of Docker's answers only what is used is looked at; the names are its own. */
function at(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/**
 * What the host asks of a Docker engine by itself: whether it can be used, and that containers of a host that ends are
 * taken away. Everything that is about a sandbox that lives goes through workerd.
 */
export class Docker {
  readonly #socket: string

  constructor(socket: string) {
    this.#socket = socket
  }

  async isAnswering(): Promise<boolean> {
    try {
      return (await this.#ask('GET', '/_ping')).ok
    } catch {
      // Why is not told by a socket.
      return false
    }
  }

  async hasImage(name: string): Promise<boolean> {
    return (await this.#ask('GET', `/images/${name}/json`)).ok
  }

  /** Address under which containers of the default network see this machine; undefined when the engine names none. */
  async gateway(): Promise<string | undefined> {
    const bridge: unknown = await (await this.#ask('GET', '/networks/bridge')).json()
    const gateways = listOf(at(at(bridge, 'IPAM'), 'Config')).map((each) => textOf(at(each, 'Gateway')))
    return gateways.find((gateway) => gateway !== '')
  }

  /** All containers whose name has this in it, also those that do not run. */
  async list(part: string): Promise<readonly FoundContainer[]> {
    const filters = encodeURIComponent(JSON.stringify({ name: [part] }))
    const response = await this.#ask('GET', `/containers/json?all=true&filters=${filters}`)
    if (!response.ok)
      throw new SandwireError(
        'provider_unavailable',
        `Cannot list containers: Docker says ${response.status}`,
      )
    const found = listOf(await response.json())
    return found.flatMap((each) =>
      listOf(at(each, 'Names')).map((name) => ({
        name: textOf(name).replace(/^\//, ''),
        isRunning: at(each, 'State') === 'running',
      })),
    )
  }

  /** Asks it to end, and ends it when it does not within the time. */
  async stop(name: string, seconds: number): Promise<void> {
    await this.#ask('POST', `/containers/${name}/stop?t=${seconds}`, seconds * 1000)
  }

  /** Removes it, running or not; nothing to remove is no error. */
  async remove(name: string): Promise<void> {
    await this.#ask('DELETE', `/containers/${name}?force=true`)
  }

  #ask(method: string, path: string, extraMs = 0): Promise<Response> {
    return fetch(`http://localhost${path}`, {
      unix: this.#socket,
      method,
      // Whoever serves the socket now is stopRequested, not who did when it was last stopRequested.
      keepalive: false,
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS + extraMs),
    })
  }
}
