import { encodePath, shape } from '@sandwire/protocol'
import type { ApiResponse, Api } from '../server/api.ts'
import { looseObject, decodeResponse } from '../server/response.ts'

/** A name or path; bytes that are not UTF-8 are lone surrogates. */
const pathText: shape.Shape<string> = {
  decode: (value) => (typeof value === 'string' && value.length <= 8192 ? value : undefined),
  describe: 'path',
}
const milliseconds: shape.Shape<number> = {
  decode: (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined),
  describe: 'ms',
}
const kind = shape.oneOf(['file', 'folder', 'link', 'special'])
const facts = {
  kind,
  size: shape.nonNegativeInteger,
  mode: shape.integer(0, 0o7777),
  mtimeMs: milliseconds,
  etag: shape.text(256),
  /** What a link points to. */
  target: shape.optional(shape.nullable(shape.oneOf(['file', 'folder']))),
} as const

const statShape = looseObject(facts)
const entryShape = looseObject({ ...facts, name: pathText })
const treeShape = looseObject({ entries: shape.list(entryShape, 100_000), truncated: shape.bool })
const unpackedShape = looseObject({
  entries: shape.nonNegativeInteger,
  bytes: shape.nonNegativeInteger,
  refused: shape.list(looseObject({ path: pathText, reason: shape.text(1024) }), 10_000),
  refusedMore: shape.nonNegativeInteger,
})
const receivedShape = looseObject({ received: shape.offset })

export type RemoteStat = shape.Decoded<typeof statShape>
export type RemoteEntry = shape.Decoded<typeof entryShape>
export type UnpackResult = shape.Decoded<typeof unpackedShape>

/** Entries per page of a folder. */
const PAGE_ENTRIES = 1_000

/** Attributes of a finished upload. */
export interface FinishUpload {
  readonly path: string
  readonly size: number
  readonly mode?: number
  readonly mtimeMs?: number
}

/** An offset in a version of a file. */
export interface ResumePoint {
  readonly offset: number
  readonly etag: string
}

/** Control's file routes for one sandbox. */
export class RemoteWorkspace {
  readonly #api: Api
  readonly #base: string
  readonly #signal: AbortSignal

  constructor(api: Api, sandbox: string, signal: AbortSignal) {
    this.#api = api
    this.#base = `/api/workspaces/${sandbox}`
    this.#signal = signal
  }

  async stat(path: string): Promise<RemoteStat> {
    return decodeResponse(statShape, await this.#json('GET', 'stat', { path }))
  }

  /** The entries of a folder, page by page. */
  async *list(path: string): AsyncGenerator<readonly RemoteEntry[]> {
    let after: string | undefined
    for (;;) {
      const parameters = { path, limit: String(PAGE_ENTRIES), ...(after === undefined ? {} : { after }) }
      const { entries, truncated } = decodeResponse(treeShape, await this.#json('GET', 'tree', parameters))
      yield entries
      after = entries.at(-1)?.name
      if (!truncated || after === undefined) return
    }
  }

  readFile(path: string, from?: ResumePoint): Promise<ApiResponse> {
    const headers: Record<string, string> =
      from === undefined ? {} : { range: `bytes=${from.offset}-`, 'if-range': `"${from.etag}"` }
    return this.#send('GET', 'file', { path }, { headers })
  }

  readArchive(path: string, after: string | undefined): Promise<ApiResponse> {
    return this.#send('GET', 'archive', { path, ...(after === undefined ? {} : { after }) })
  }

  async putArchive(path: string, archive: Uint8Array<ArrayBuffer>): Promise<UnpackResult> {
    const response = await this.#send('PUT', 'archive', { path }, { body: archive })
    return decodeResponse(unpackedShape, await response.json())
  }

  /** How many bytes of an upload have arrived. */
  async getReceivedBytes(id: string, path: string): Promise<number> {
    return decodeResponse(receivedShape, await this.#json('GET', `uploads/${id}`, { path })).received
  }

  /** Appends to an upload of `offset` bytes; returns its new size. */
  async putChunk(id: string, path: string, offset: number, bytes: Uint8Array<ArrayBuffer>): Promise<number> {
    const response = await this.#send(
      'PUT',
      `uploads/${id}`,
      { path, offset: String(offset) },
      { body: bytes },
    )
    return decodeResponse(receivedShape, await response.json()).received
  }

  async finishUpload(id: string, finish: FinishUpload): Promise<void> {
    await (await this.#send('POST', `uploads/${id}`, {}, { json: finish })).json()
  }

  async discardUpload(id: string, path: string): Promise<void> {
    await (await this.#send('DELETE', `uploads/${id}`, { path })).json()
  }

  async #json(method: 'GET', tail: string, parameters: Readonly<Record<string, string>>): Promise<unknown> {
    return (await this.#send(method, tail, parameters)).json()
  }

  #send(
    method: 'GET' | 'PUT' | 'POST' | 'DELETE',
    tail: string,
    parameters: Readonly<Record<string, string>>,
    more: { headers?: Record<string, string>; body?: Uint8Array<ArrayBuffer>; json?: unknown } = {},
  ): Promise<ApiResponse> {
    const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodePath(value) ?? ''}`)
    const path = `${this.#base}/${tail}${query.length === 0 ? '' : `?${query.join('&')}`}`
    return this.#api.send({ method, path, signal: this.#signal, ...more })
  }
}
