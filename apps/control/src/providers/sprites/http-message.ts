/** Longest head of a response. */
export const MAX_HEAD_BYTES = 32 * 1024
/** Longest line between chunks. */
const MAX_CHUNK_LINE_BYTES = 256

/** A peer that does not speak HTTP/1.1. */
export class HttpProtocolError extends Error {
  override readonly name = 'HttpProtocolError'
}

function fail(problem: string): never {
  throw new HttpProtocolError(problem)
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// oxlint-disable-next-line no-control-regex -- Refuses exactly these.
const CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/
const TARGET = /^\/[\x21-\x7e]*$/
const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']

/** The head of a request. Throws for anything that could begin a second request. */
export function formatRequestHead(
  method: string,
  target: string,
  headers: readonly (readonly [name: string, value: string])[],
): Uint8Array {
  if (!METHODS.includes(method)) fail(`the method ${method} is not allowed`)
  if (!TARGET.test(target)) fail('the path is not allowed')
  const lines = headers.map(([name, value]) => {
    if (!TOKEN.test(name) || CONTROL_CHARACTER.test(value)) fail('a header is not allowed')
    return `${name}: ${value}\r\n`
  })
  return new TextEncoder().encode(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`)
}

export interface ResponseHead {
  readonly status: number
  readonly headers: Headers
}

/** Parses the head of a response, without the empty line at its end. */
export function parseResponseHead(text: string): ResponseHead {
  const [statusLine = '', ...lines] = text.split('\r\n')
  const [, digits = ''] = /^HTTP\/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?$/.exec(statusLine) ?? []
  if (digits === '') fail('the status line is not valid')
  const headers = new Headers()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0))
    const value = line.slice(colon + 1).trim()
    if (!TOKEN.test(name) || CONTROL_CHARACTER.test(value)) fail('a header is not valid')
    headers.append(name, value)
  }
  return { status: Number(digits), headers }
}

/** How the end of a response's body is found. */
export type BodyLength =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'close' }

/** The rules of RFC 9112 section 6.3; a response with two lengths is refused. */
export function bodyLengthOf({ status, headers }: ResponseHead, method: string): BodyLength {
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return { kind: 'none' }
  const encoding = headers.get('transfer-encoding')
  const length = headers.get('content-length')
  if (encoding !== null) {
    if (length !== null || encoding.toLowerCase() !== 'chunked')
      fail('the transfer encoding is not supported')
    return { kind: 'chunked' }
  }
  if (length === null) return { kind: 'close' }
  if (!/^[0-9]{1,15}$/.test(length)) fail('the content length is not valid')
  return { kind: 'length', bytes: Number(length) }
}

/** What remains of a body; `data` bytes of a chunk are still to come. */
type ChunkState =
  | { readonly kind: 'size'; readonly line: string }
  | { readonly kind: 'data'; readonly bytes: number }
  | { readonly kind: 'dataEnd'; readonly line: string }
  | { readonly kind: 'trailer'; readonly line: string }
  | { readonly kind: 'done' }

/** Decodes a body from bytes that may be split anywhere. Throws `HttpProtocolError`. */
export class BodyDecoder {
  readonly #kind: BodyLength['kind']
  #remaining: number
  #chunk: ChunkState = { kind: 'size', line: '' }

  constructor(length: BodyLength) {
    this.#kind = length.kind
    this.#remaining = length.kind === 'length' ? length.bytes : 0
  }

  get isDone(): boolean {
    if (this.#kind === 'none') return true
    if (this.#kind === 'length') return this.#remaining === 0
    return this.#kind === 'chunked' && this.#chunk.kind === 'done'
  }

  /** Throws unless the connection may end here. */
  end(): void {
    if (this.#kind !== 'close' && !this.isDone) fail('the body is incomplete')
  }

  /** The parts of the body in these bytes, none of them empty; what follows the body is dropped. */
  push(bytes: Uint8Array): Uint8Array[] {
    if (this.#kind === 'close') return bytes.length === 0 ? [] : [bytes]
    if (this.#kind === 'chunked') return this.#pushChunked(bytes)
    const part = bytes.subarray(0, this.#remaining)
    this.#remaining -= part.length
    return part.length === 0 ? [] : [part]
  }

  #pushChunked(bytes: Uint8Array): Uint8Array[] {
    const parts: Uint8Array[] = []
    let at = 0
    while (at < bytes.length && this.#chunk.kind !== 'done') {
      const state = this.#chunk
      if (state.kind === 'data') {
        const part = bytes.subarray(at, at + state.bytes)
        parts.push(part)
        at += part.length
        const left = state.bytes - part.length
        this.#chunk = left > 0 ? { kind: 'data', bytes: left } : { kind: 'dataEnd', line: '' }
      } else {
        const byte = bytes[at] ?? 0
        at += 1
        const line = state.line + String.fromCharCode(byte)
        if (line.length > MAX_CHUNK_LINE_BYTES) fail('a chunk is not valid')
        this.#chunk = line.endsWith('\r\n')
          ? endLine(state.kind, line.slice(0, -2))
          : { kind: state.kind, line }
      }
    }
    return parts
  }
}

function endLine(kind: 'size' | 'dataEnd' | 'trailer', line: string): ChunkState {
  if (kind === 'trailer') return line === '' ? { kind: 'done' } : { kind: 'trailer', line: '' }
  if (kind === 'dataEnd') return line === '' ? { kind: 'size', line: '' } : fail('a chunk is too long')
  const [, digits = ''] = /^([0-9a-fA-F]{1,12})(?:;.*)?$/.exec(line) ?? []
  if (digits === '') fail('the size of a chunk is not valid')
  const size = Number.parseInt(digits, 16)
  return size === 0 ? { kind: 'trailer', line: '' } : { kind: 'data', bytes: size }
}

/** Formats a part of a request body of unknown length. */
export function encodeChunk(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`${bytes.length.toString(16)}\r\n`)
  const chunk = new Uint8Array(head.length + bytes.length + 2)
  chunk.set(head)
  chunk.set(bytes, head.length)
  chunk.set([13, 10], head.length + bytes.length)
  return chunk
}

export const LAST_CHUNK = new TextEncoder().encode('0\r\n\r\n')
