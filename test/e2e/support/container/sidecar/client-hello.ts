/** What the first bytes of a connection reveal about its destination. */
export type Opening =
  /** More bytes are needed. */
  | { readonly kind: 'partial' }
  | { readonly kind: 'tls'; readonly serverName: string | undefined }
  | { readonly kind: 'http'; readonly host: string | undefined }
  | { readonly kind: 'other' }

/** More than any request head in the tests. */
const MAX_OPENING_BYTES = 64 * 1024
const HANDSHAKE_RECORD = 0x16
const CLIENT_HELLO = 1
const SERVER_NAME_EXTENSION = 0
const HOST_NAME = 0

/** Reads the requested name: SNI of TLS, Host of HTTP. */
export function readOpening(bytes: Buffer): Opening {
  const [first] = bytes
  if (first === undefined) return { kind: 'partial' }
  if (first === HANDSHAKE_RECORD) return readTls(bytes)
  if (!/^[A-Z]{1,16}( |$)/.test(bytes.subarray(0, 16).toString('latin1').split(' ', 1)[0] ?? ''))
    return { kind: 'other' }
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return { kind: bytes.length > MAX_OPENING_BYTES ? 'other' : 'partial' }
  const head = bytes.subarray(0, end).toString('latin1')
  return { kind: 'http', host: /^host:[ \t]*(\S+)[ \t]*$/im.exec(head)?.[1] }
}

function readTls(bytes: Buffer): Opening {
  if (bytes.length < 5) return { kind: 'partial' }
  const length = bytes.readUInt16BE(3)
  if (bytes.length < 5 + length) return { kind: 'partial' }
  try {
    return { kind: 'tls', serverName: findServerName(new Cursor(bytes.subarray(5, 5 + length))) }
  } catch {
    // Truncated: the server will refuse it.
    return { kind: 'tls', serverName: undefined }
  }
}

function findServerName(hello: Cursor): string | undefined {
  if (hello.number(1) !== CLIENT_HELLO) return undefined
  hello.take(3 + 2 + 32)
  hello.take(hello.number(1))
  hello.take(hello.number(2))
  hello.take(hello.number(1))
  const extensions = new Cursor(hello.take(hello.number(2)))
  while (!extensions.isEmpty) {
    const type = extensions.number(2)
    const body = new Cursor(extensions.take(extensions.number(2)))
    if (type !== SERVER_NAME_EXTENSION) continue
    body.take(2)
    return body.number(1) === HOST_NAME ? body.take(body.number(2)).toString('latin1') : undefined
  }
  return undefined
}

/** Reads a buffer from its beginning; throws at its end. */
class Cursor {
  #rest: Buffer

  constructor(bytes: Buffer) {
    this.#rest = bytes
  }

  get isEmpty(): boolean {
    return this.#rest.length === 0
  }

  number(bytes: number): number {
    return this.take(bytes).readUIntBE(0, bytes)
  }

  take(bytes: number): Buffer {
    if (bytes > this.#rest.length) throw new RangeError('past the end')
    const taken = this.#rest.subarray(0, bytes)
    this.#rest = this.#rest.subarray(bytes)
    return taken
  }
}
