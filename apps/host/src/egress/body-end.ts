import { type Header, fieldValues } from './message-head.ts'

/** Finds the end of a request body, so that following bytes are not forwarded as part of it. */
export interface BodyEnd {
  /** How many of these bytes belong to the body; undefined when the framing is invalid. */
  readonly take: (bytes: Uint8Array) => number | undefined
  readonly isComplete: () => boolean
}

const MAX_LINE_BYTES = 4 * 1024
const MAX_TRAILER_BYTES = 16 * 1024
const MAX_CHUNK_BYTES = 2 ** 40
const CR = 13
const LF = 10

function fixedLength(length: number): BodyEnd {
  let left = length
  return {
    take: (bytes) => {
      const taken = Math.min(left, bytes.length)
      left -= taken
      return taken
    },
    isComplete: () => left === 0,
  }
}

type ChunkState = 'size' | 'data' | 'data_end' | 'trailer' | 'done' | 'broken'

/** Parses a chunked body: lines byte by byte, chunk data in one step. */
class ChunkedBody implements BodyEnd {
  #state: ChunkState = 'size'
  /** The current line, without CRLF. */
  #line = ''
  #hasCr = false
  #leftBytes = 0
  #trailerBytes = 0

  readonly isComplete = (): boolean => this.#state === 'done'

  readonly take = (bytes: Uint8Array): number | undefined => {
    let at = 0
    while (at < bytes.length && this.#state !== 'done') {
      if (this.#state === 'data') {
        const taken = Math.min(this.#leftBytes, bytes.length - at)
        this.#leftBytes -= taken
        at += taken
        if (this.#leftBytes === 0) this.#state = 'data_end'
      } else this.#byte(bytes[at++] ?? 0)
      if (this.#state === 'broken') return undefined
    }
    return at
  }

  #byte(byte: number): void {
    if (byte === LF) {
      if (!this.#hasCr) this.#state = 'broken'
      else this.#lineEnded()
      this.#line = ''
      this.#hasCr = false
      return
    }
    // CR is only valid before LF.
    if (this.#hasCr || byte === 0 || this.#line.length >= MAX_LINE_BYTES) this.#state = 'broken'
    else if (byte === CR) this.#hasCr = true
    else this.#line += String.fromCharCode(byte)
  }

  #lineEnded(): void {
    switch (this.#state) {
      case 'size':
        this.#sized()
        return
      case 'data_end':
        this.#state = this.#line === '' ? 'size' : 'broken'
        return
      case 'trailer':
        this.#trailerBytes += this.#line.length + 2
        if (this.#line === '') this.#state = 'done'
        else if (this.#trailerBytes > MAX_TRAILER_BYTES) this.#state = 'broken'
        return
      case 'data':
      case 'done':
      case 'broken':
    }
  }

  #sized(): void {
    const [size = ''] = this.#line.split(';', 1)
    const bytes = /^[0-9a-f]{1,16}$/i.test(size) ? Number.parseInt(size, 16) : Number.NaN
    if (!(bytes <= MAX_CHUNK_BYTES)) this.#state = 'broken'
    else if (bytes === 0) this.#state = 'trailer'
    else {
      this.#leftBytes = bytes
      this.#state = 'data'
    }
  }
}

/** Determines the framing of a request body; undefined when it is ambiguous (request smuggling). */
export function readBodyEnd(headers: readonly Header[], isHttp10: boolean): BodyEnd | undefined {
  const encodings = fieldValues(headers, 'transfer-encoding')
  const lengths = fieldValues(headers, 'content-length')
  if (encodings.length > 0) {
    const isChunked = encodings.length === 1 && encodings[0]?.toLowerCase() === 'chunked'
    return isChunked && lengths.length === 0 && !isHttp10 ? new ChunkedBody() : undefined
  }
  if (lengths.length === 0) return fixedLength(0)
  const [length = ''] = lengths
  return lengths.length === 1 && /^(0|[1-9][0-9]{0,14})$/.test(length)
    ? fixedLength(Number(length))
    : undefined
}
