import { SandwireError } from '@sandwire/protocol'

/** Long enough for an engine that removes many containers at once. */
const CALL_TIMEOUT_MS = 30_000

/** The fields of a container that are used here. */
export interface FoundContainer {
  readonly name: string
  readonly isRunning: boolean
  /** Its address on the default network; empty when it has none. */
  readonly address: string
  readonly command: string
}

/** Reads one field of Docker's JSON. */
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
 * The host's own requests to a Docker engine: whether it can be used, and removal of containers on exit. Everything about
 * running sandboxes goes through workerd.
 */
export class Docker {
  readonly #socket: string

  constructor(socket: string) {
    this.#socket = socket
  }

  async isAnswering(): Promise<boolean> {
    try {
      return (await this.#request('GET', '/_ping')).ok
    } catch {
      // The reason is not available from the socket.
      return false
    }
  }

  async hasImage(name: string): Promise<boolean> {
    return (await this.#request('GET', `/images/${name}/json`)).ok
  }

  /** Gateway address of the default network; undefined when the engine has none. */
  async gateway(): Promise<string | undefined> {
    const bridge: unknown = await (await this.#request('GET', '/networks/bridge')).json()
    const gateways = listOf(at(at(bridge, 'IPAM'), 'Config')).map((each) => textOf(at(each, 'Gateway')))
    return gateways.find((gateway) => gateway !== '')
  }

  /** Address on which the default network publishes ports; undefined when it is every address of this machine. */
  async publishAddress(): Promise<string | undefined> {
    const bridge: unknown = await (await this.#request('GET', '/networks/bridge')).json()
    const address = textOf(at(at(bridge, 'Options'), 'com.docker.network.bridge.host_binding_ipv4'))
    return address === '' || address === '0.0.0.0' ? undefined : address
  }

  /** Containers with this in their name, including stopped ones. */
  async list(part: string): Promise<readonly FoundContainer[]> {
    const filters = encodeURIComponent(JSON.stringify({ name: [part] }))
    const response = await this.#request('GET', `/containers/json?all=true&filters=${filters}`)
    if (!response.ok)
      throw new SandwireError(
        'provider_unavailable',
        `Cannot list containers: Docker answered ${response.status}`,
      )
    const found = listOf(await response.json())
    return found.flatMap((each) =>
      listOf(at(each, 'Names')).map((name) => ({
        name: textOf(name).replace(/^\//, ''),
        isRunning: at(each, 'State') === 'running',
        address: textOf(at(at(at(at(each, 'NetworkSettings'), 'Networks'), 'bridge'), 'IPAddress')),
        command: textOf(at(each, 'Command')),
      })),
    )
  }

  /** Stops a container; Docker kills it after the timeout. */
  async stop(name: string, seconds: number): Promise<void> {
    await this.#request('POST', `/containers/${name}/stop?t=${seconds}`, seconds * 1000)
  }

  /** Removes a container, running or not; a missing one is no error. */
  async remove(name: string): Promise<void> {
    await this.#request('DELETE', `/containers/${name}?force=true`)
  }

  #request(method: string, path: string, extraMs = 0): Promise<Response> {
    return fetch(`http://localhost${path}`, {
      unix: this.#socket,
      method,
      // No keep-alive: the engine may have been restarted since the last request.
      keepalive: false,
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS + extraMs),
    })
  }
}
