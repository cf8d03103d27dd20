import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { exportPublicKey, ID_ALPHABET } from '@sandwire/internal-api'
import { eventually } from '@sandwire/testing'
import { Miniflare } from 'miniflare'
import type { DockerResult } from './docker.ts'
import type { Engine } from './engine.ts'

const SCRIPT = readFileSync(join(import.meta.dir, 'box.worker.mjs'), 'utf8')
const PORT = 8080

export interface BoxImages {
  readonly sandbox: string
  readonly sidecar: string
}

/** A workerd whose Durable Objects have containers on the engine. */
export class BoxWorker implements AsyncDisposable {
  readonly #engine: Engine
  readonly #miniflare: Miniflare
  readonly #url: URL
  /** Separates the containers of two runs on one engine. */
  readonly #run = crypto.randomUUID()
  readonly #ids: string[] = []

  private constructor(engine: Engine, miniflare: Miniflare, url: URL) {
    this.#engine = engine
    this.#miniflare = miniflare
    this.#url = url
  }

  static async start(engine: Engine, images: BoxImages): Promise<BoxWorker> {
    const miniflare = new Miniflare({
      modules: [{ type: 'ESModule', path: 'index.js', contents: SCRIPT }],
      modulesRoot: '/',
      compatibilityDate: '2026-07-01',
      durableObjects: {
        BOX: { className: 'Box', useSQLite: true, container: { imageName: images.sandbox } },
      },
      containerEngine: {
        localDocker: { socketPath: engine.host, containerEgressInterceptorImage: images.sidecar },
      },
    })
    return new BoxWorker(engine, miniflare, await miniflare.ready)
  }

  /** Sends a request to the object of a container; throws its error. */
  async call(box: string, path: string, body?: object): Promise<string> {
    const url = new URL(path, this.#url)
    url.searchParams.set('box', `${this.#run} ${box}`)
    const response = await fetch(
      url,
      body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) },
    )
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return text
  }

  /** Starts a container and waits until its sandboxd responds. */
  async open(box: string, options: { readonly hasInternet: boolean }): Promise<Box> {
    const keys = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
    const env = {
      SANDWIRE_SANDBOX: ID_ALPHABET,
      SANDWIRE_PUBLIC_KEY: await exportPublicKey(keys.publicKey),
    }
    const { id } = JSON.parse(await this.call(box, '/start', { ...options, env })) as { id: string }
    this.#ids.push(id)
    await eventually(() => this.call(box, `/port?port=${PORT}`).then(() => true), {
      what: 'sandboxd in the container',
    })
    const listed = await this.#engine.docker('ps', '--filter', `name=${id}`, '--format', '{{.Names}}')
    const own = listed.split('\n').find((name) => name.endsWith(id))
    if (own === undefined) throw new Error(`The container does not run: ${listed}`)
    return {
      name: own,
      run: (user, script) => this.#engine.tryDocker(['exec', '--user', user, own, 'sh', '-c', script]),
      evaluate: (user, code) =>
        this.#engine.tryDocker(
          // The compiled sandboxd contains Bun.
          ['exec', '--user', user, '--env', 'BUN_BE_BUN=1', own, '/usr/local/bin/sandboxd', '-e', code],
        ),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#miniflare.dispose()
    for (const id of this.#ids) {
      const listed = await this.#engine.docker('ps', '--all', '--quiet', '--filter', `name=${id}`)
      await this.#engine.tryDocker(['rm', '--force', ...listed.split('\n').filter((each) => each !== '')])
    }
  }
}

/** A running container. */
export interface Box {
  readonly name: string
  readonly run: (user: string, script: string) => Promise<DockerResult>
  /** Runs TypeScript inside. */
  readonly evaluate: (user: string, code: string) => Promise<DockerResult>
}
