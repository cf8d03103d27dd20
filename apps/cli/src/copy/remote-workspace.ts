import { encodePath, schema } from '@sandwire/protocol'
import type { ApiResponse, Api } from '../server/api.ts'
import { looseObject, decodeResponse } from '../server/response.ts'

/** A name or path; bytes that are not UTF-8 are lone surrogates. */
const pathText: schema.Schema<string> = {
  decode: (value) => (typeof value === 'string' && value.length <= 8192 ? value : undefined),
  describe: 'path',
}
const milliseconds: schema.Schema<number> = {
  decode: (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined),
  describe: 'ms',
}
const kind = schema.oneOf(['file', 'folder', 'link', 'special'])
const facts = {
  kind,
  size: schema.nonNegativeInteger,
  mode: schema.integer(0, 0o7777),
  mtimeMs: milliseconds,
  etag: schema.text(256),
  /** What a link points to. */
  target: schema.optional(schema.nullable(schema.oneOf(['file', 'folder']))),
} as const

const statSchema = looseObject(facts)
const entrySchema = looseObject({ ...facts, name: pathText })
const treeSchema = looseObject({ entries: schema.list(entrySchema, 100_000), truncated: schema.bool })
const unpackedSchema = looseObject({
  entries: schema.nonNegativeInteger,
  bytes: schema.nonNegativeInteger,
  refused: schema.list(looseObject({ path: pathText, reason: schema.text(1024) }), 10_000),
  refusedMore: schema.nonNegativeInteger,
})
const receivedSchema = looseObject({ received: schema.offset })

export type RemoteStat = schema.Decoded<typeof statSchema>
export type RemoteEntry = schema.Decoded<typeof entrySchema>
export type UnpackResult = schema.Decoded<typeof unpackedSchema>

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
    return decodeResponse(statSchema, await this.#json('GET', 'stat', { path }))
  }

  /** The entries of a folder, page by page. */
  async *list(path: string): AsyncGenerator<readonly RemoteEntry[]> {
    let after: string | undefined
    for (;;) {
      const parameters = { path, limit: String(PAGE_ENTRIES), ...(after === undefined ? {} : { after }) }
      const { entries, truncated } = decodeResponse(treeSchema, await this.#json('GET', 'tree', parameters))
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
    return decodeResponse(unpackedSchema, await response.json())
  }

  /** How many bytes of an upload have arrived. */
  async getReceivedBytes(id: string, path: string): Promise<number> {
    return decodeResponse(receivedSchema, await this.#json('GET', `uploads/${id}`, { path })).received
  }

  /** Appends to an upload of `offset` bytes; returns its new size. */
  async putChunk(id: string, path: string, offset: number, bytes: Uint8Array<ArrayBuffer>): Promise<number> {
    const response = await this.#send(
      'PUT',
      `uploads/${id}`,
      { path, offset: String(offset) },
      { body: bytes },
    )
    return decodeResponse(receivedSchema, await response.json()).received
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
