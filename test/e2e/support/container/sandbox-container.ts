import { exportPublicKey, ID_ALPHABET, signInternalToken } from '@sandwire/internal-api'
import { connectPlain, eventually, type PlainClient } from '@sandwire/testing'
import { mintHex } from '../wire-client.ts'
import type { Engine } from './engine.ts'

const SANDBOX = ID_ALPHABET
const TOKEN_LIFE_MS = 30_000
const START_MS = 60_000

/** Output and exit of a program in the container. */
export interface Inside {
  readonly stdout: string
  readonly stderr: string
  readonly exit: unknown
}

/** A sandbox in a container; the test takes control's role. */
export class SandboxContainer implements AsyncDisposable {
  readonly name: string
  readonly #engine: Engine
  readonly #port: number
  readonly #key: CryptoKey

  private constructor(parts: { engine: Engine; name: string; port: number; key: CryptoKey }) {
    this.#engine = parts.engine
    this.name = parts.name
    this.#port = parts.port
    this.#key = parts.key
  }

  static async start(
    engine: Engine,
    image: string,
    env: Record<string, string> = {},
  ): Promise<SandboxContainer> {
    const keys = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
    const variables = {
      SANDWIRE_SANDBOX: SANDBOX,
      SANDWIRE_PUBLIC_KEY: await exportPublicKey(keys.publicKey),
      ...env,
    }
    const name = `sandwire-e2e-${mintHex()}`
    const options = Object.entries(variables).flatMap(([key, value]) => ['--env', `${key}=${value}`])
    await engine.docker('run', '--detach', '--name', name, '--publish', '127.0.0.1::8080', ...options, image)
    const published = await engine.docker('port', name, '8080/tcp')
    const port = Number(/:(\d+)/.exec(published)?.[1])
    const container = new SandboxContainer({ engine, name, port, key: keys.privateKey })
    try {
      await eventually(() => container.#isUp(), { what: 'sandboxd in the container', timeoutMs: START_MS })
      return container
    } catch (error) {
      const { stdout, stderr } = await engine.tryDocker(['logs', name])
      await container[Symbol.asyncDispose]()
      throw new Error(`Cannot start a sandbox in a container: ${stdout}${stderr}`, { cause: error })
    }
  }

  /** Attaches a plain client to a shell script that the user runs. */
  async attach(script: string): Promise<PlainClient> {
    const query = new URLSearchParams([
      ['cmd', 'bash'],
      ['arg', '-c'],
      ['arg', script],
    ])
    const path = `/attach?${query.toString()}`
    const issuedMs = Date.now()
    const token = await signInternalToken(this.#key, {
      method: 'GET',
      path,
      sandbox: SANDBOX,
      identity: 'local:1',
      authority: 'driver',
      exec: true,
      requestId: mintHex(),
      issuedMs,
      expiresMs: issuedMs + TOKEN_LIFE_MS,
    })
    const headers = { host: 'localhost', authorization: `Bearer ${token}` }
    return connectPlain(`ws://127.0.0.1:${this.#port}${path}`, { headers })
  }

  /** Runs a shell script as the user. */
  async run(script: string): Promise<Inside> {
    const client = await this.attach(script)
    await client.closed
    return { stdout: client.stdout.text, stderr: client.stderr.text, exit: client.exit }
  }

  /** Runs a command as the container's root. */
  async inspect(...argv: string[]): Promise<string> {
    return this.#engine.docker('exec', '--user', '0', this.name, ...argv)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#engine.tryDocker(['rm', '--force', this.name])
  }

  async #isUp(): Promise<boolean> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/healthz`, { headers: { host: 'localhost' } })
    return response.ok
  }
}
