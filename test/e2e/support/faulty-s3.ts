/** Moments of a save (`put`: before a segment is stored, `stored`: after it, before the answer) and of a restore. */
export const STORE_STEPS = ['put', 'stored', 'table', 'segment'] as const
export type StoreStep = (typeof STORE_STEPS)[number]

/** What a request gets instead of its response; undefined: its response. */
type Act = () => Promise<Response | undefined>

interface Stored {
  readonly bytes: Uint8Array
  readonly sha256: string
}

/** A service with the part of the S3 API that versions use, in memory. It can be held or fail at every step. */
export class FaultyS3 implements AsyncDisposable {
  readonly objects = new Map<string, Stored>()
  readonly #server: Bun.Server<undefined>
  #armed: { readonly step: StoreStep; readonly act: Act; readonly isOnce: boolean } | undefined

  constructor() {
    this.#server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      idleTimeout: 120,
      fetch: (request) => this.#answer(request),
    })
  }

  /** Configures a host to use it. */
  get env(): Record<string, string> {
    return {
      SANDWIRE_STORE: 's3://files',
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${this.#server.port}`,
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'canary-of-the-s3-secret',
    }
  }

  /** Acts at the next request that reaches a step; resolves when it does. */
  once(step: StoreStep, act: Act): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#armed = {
      step,
      isOnce: true,
      act: () => {
        resolve()
        return act()
      },
    }
    return promise
  }

  /** Acts at every request that reaches a step, until `heal`. */
  always(step: StoreStep, act: Act): void {
    this.#armed = { step, act, isOnce: false }
  }

  heal(): void {
    this.#armed = undefined
  }

  async #reach(step: StoreStep): Promise<Response | undefined> {
    const armed = this.#armed
    if (armed?.step !== step) return undefined
    if (armed.isOnce) this.#armed = undefined
    return armed.act()
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    if (searchParams.has('list-type')) return this.#list(searchParams.get('prefix') ?? '')
    const known = this.objects.get(pathname)
    const headers = { 'x-amz-meta-sha256': known?.sha256 ?? '' }
    switch (request.method) {
      case 'HEAD':
        return known === undefined
          ? new Response(null, { status: 404 })
          : new Response(null, { headers: { ...headers, 'content-length': String(known.bytes.byteLength) } })
      case 'PUT': {
        const bytes = await request.bytes()
        const early = await this.#reach('put')
        if (early !== undefined) return early
        if (known !== undefined) return new Response(null, { status: 412 })
        this.objects.set(pathname, { bytes, sha256: request.headers.get('x-amz-meta-sha256') ?? '' })
        return (await this.#reach('stored')) ?? new Response()
      }
      case 'DELETE':
        this.objects.delete(pathname)
        return new Response(null, { status: 204 })
      case 'GET': {
        const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get('range') ?? '') ?? []
        const early = await this.#reach(start === undefined ? 'segment' : 'table')
        if (early !== undefined) return early
        if (known === undefined) return new Response('<Code>NoSuchKey</Code>', { status: 404 })
        return start === undefined
          ? new Response(Buffer.from(known.bytes), { headers })
          : new Response(Buffer.from(known.bytes.subarray(Number(start), Number(end) + 1)), { status: 206 })
      }
    }
    return new Response(null, { status: 405 })
  }

  #list(prefix: string): Response {
    const keys = [...this.objects.keys()]
      .map((path) => path.slice('/files/'.length))
      .filter((key) => key.startsWith(prefix))
    return new Response(
      `<ListBucketResult>${keys.map((key) => `<Key>${key}</Key>`).join('')}</ListBucketResult>`,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true)
  }
}
