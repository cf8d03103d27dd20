import path from 'node:path'
import { isErrorCode, SandwireError } from '@sandwire/protocol'
import { Miniflare, type WorkerOptions } from 'miniflare'
import type {
  ByteRange,
  SegmentFacts,
  SegmentStore,
} from '../../../apps/control/src/versions/segment-store.ts'

let bundle: Promise<string> | undefined

async function build(): Promise<string> {
  const built = await Bun.build({
    entrypoints: [path.join(import.meta.dir, '../../../apps/control/test/support/store.worker.mjs')],
    target: 'browser',
    format: 'esm',
    external: ['cloudflare:*', 'node:*'],
  })
  const [output] = built.outputs
  if (output === undefined) throw new Error('The worker was not built')
  return output.text()
}

/** One of control's stores in workerd, used over HTTP. */
export class StoreInWorkerd implements SegmentStore, AsyncDisposable {
  readonly #miniflare: Miniflare
  readonly #url: string
  readonly #close: () => Promise<void>

  private constructor(miniflare: Miniflare, url: string, close: () => Promise<void>) {
    this.#miniflare = miniflare
    this.#url = url
    this.#close = close
  }

  static async open(
    options: Partial<WorkerOptions>,
    close: () => Promise<void> = async () => undefined,
  ): Promise<StoreInWorkerd> {
    bundle ??= build()
    const miniflare = new Miniflare({
      modules: [{ type: 'ESModule', path: 'index.js', contents: await bundle }],
      modulesRoot: '/',
      compatibilityDate: '2026-07-01',
      compatibilityFlags: ['nodejs_compat', 'no_nodejs_compat_v2'],
      ...options,
    } as ConstructorParameters<typeof Miniflare>[0])
    return new StoreInWorkerd(miniflare, String(await miniflare.ready), close)
  }

  async put(
    key: string,
    body: ReadableStream | Uint8Array<ArrayBuffer>,
    { sizeBytes, sha256 }: SegmentFacts,
  ): Promise<void> {
    const as = body instanceof Uint8Array ? 'bytes' : 'stream'
    const content = await new Response(body).bytes()
    await this.#request({ do: 'put', key, as, size: String(sizeBytes), sha256 }, content)
  }

  async get(key: string, range?: ByteRange): Promise<ReadableStream | undefined> {
    const part = range === undefined ? {} : { start: String(range.start), end: String(range.end) }
    const response = await this.#request({ do: 'get', key, ...part })
    return response.status === 204 ? undefined : (response.body ?? undefined)
  }

  async delete(key: string): Promise<void> {
    await this.#request({ do: 'delete', key })
  }

  async list(prefix: string, after?: string): Promise<readonly string[]> {
    const response = await this.#request({ do: 'list', prefix, ...(after === undefined ? {} : { after }) })
    return (await response.json()) as string[]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#miniflare.dispose()
    await this.#close()
  }

  async #request(query: Record<string, string>, body?: Uint8Array<ArrayBuffer>): Promise<Response> {
    const url = `${this.#url}?${new URLSearchParams(query).toString()}`
    const response = await fetch(url, { method: 'POST', ...(body === undefined ? {} : { body }) })
    if (response.status !== 500) return response
    const { code, message } = (await response.json()) as { code: string; message: string }
    throw new SandwireError(isErrorCode(code) ? code : 'internal', message)
  }
}
