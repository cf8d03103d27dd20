import { encodePath, shape } from '@sandwire/protocol'
import type { Answer, Api } from '../server/api.ts'
import { openRecord, decodeResponse } from '../server/response.ts'

/** A name or path: any text, for bytes that are not UTF-8 stand in it as lone surrogates. */
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
  size: shape.offset,
  mode: shape.whole(0, 0o7777),
  mtimeMs: milliseconds,
  etag: shape.text(256),
  /** What a link leads to. */
  target: shape.optional(shape.nullable(shape.oneOf(['file', 'folder']))),
} as const

const statShape = openRecord(facts)
const entryShape = openRecord({ ...facts, name: pathText })
const treeShape = openRecord({ entries: shape.list(entryShape, 100_000), truncated: shape.bool })
const unpackedShape = openRecord({
  entries: shape.offset,
  bytes: shape.offset,
  refused: shape.list(openRecord({ path: pathText, reason: shape.text(1024) }), 10_000),
  refusedMore: shape.offset,
})
const receivedShape = openRecord({ received: shape.offset })

export type RemoteStat = shape.Decoded<typeof statShape>
export type RemoteEntry = shape.Decoded<typeof entryShape>
export type UnpackResult = shape.Decoded<typeof unpackedShape>

/** Entries that one question for a folder is answered with. */
const PAGE_ENTRIES = 1_000

/** How an upload in pieces ends. */
export interface FinishUpload {
  readonly path: string
  readonly size: number
  readonly mode?: number
  readonly mtimeMs?: number
}

/** Where a file is read from: its beginning, or a byte of what it was then. */
export interface From {
  readonly offset: number
  readonly etag: string
}

/** The files of one sandbox, as control has them. */
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

  /** Everything in a folder, page by page. */
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

  readFile(path: string, from?: From): Promise<Answer> {
    const headers: Record<string, string> =
      from === undefined ? {} : { range: `bytes=${from.offset}-`, 'if-range': `"${from.etag}"` }
    return this.#ask('GET', 'file', { path }, { headers })
  }

  readArchive(path: string, after: string | undefined): Promise<Answer> {
    return this.#ask('GET', 'archive', { path, ...(after === undefined ? {} : { after }) })
  }

  async putArchive(path: string, archive: Uint8Array<ArrayBuffer>): Promise<UnpackResult> {
    const answer = await this.#ask('PUT', 'archive', { path }, { body: archive })
    return decodeResponse(unpackedShape, await answer.json())
  }

  async received(id: string, path: string): Promise<number> {
    return decodeResponse(receivedShape, await this.#json('GET', `uploads/${id}`, { path })).received
  }

  /** Appends to an upload; it must hold `offset` bytes. Returns how many it holds then. */
  async putPiece(id: string, path: string, offset: number, bytes: Uint8Array<ArrayBuffer>): Promise<number> {
    const answer = await this.#ask('PUT', `uploads/${id}`, { path, offset: String(offset) }, { body: bytes })
    return decodeResponse(receivedShape, await answer.json()).received
  }

  async finish(id: string, finish: FinishUpload): Promise<void> {
    await (await this.#ask('POST', `uploads/${id}`, {}, { json: finish })).json()
  }

  async drop(id: string, path: string): Promise<void> {
    await (await this.#ask('DELETE', `uploads/${id}`, { path })).json()
  }

  async #json(method: 'GET', tail: string, parameters: Readonly<Record<string, string>>): Promise<unknown> {
    return (await this.#ask(method, tail, parameters)).json()
  }

  #ask(
    method: 'GET' | 'PUT' | 'POST' | 'DELETE',
    tail: string,
    parameters: Readonly<Record<string, string>>,
    more: { headers?: Record<string, string>; body?: Uint8Array<ArrayBuffer>; json?: unknown } = {},
  ): Promise<Answer> {
    const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodePath(value) ?? ''}`)
    const path = `${this.#base}/${tail}${query.length === 0 ? '' : `?${query.join('&')}`}`
    return this.#api.exchange({ method, path, signal: this.#signal, ...more })
  }
}
