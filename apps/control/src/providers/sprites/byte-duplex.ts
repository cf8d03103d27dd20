import { concatBytes } from '@sandwire/bytes'
import { HttpProtocolError, MAX_HEAD_BYTES, parseResponseHead, type ResponseHead } from './http-message.ts'

/** A connection that carries bytes: a TCP socket, or a tunnel through one. Reading less slows the peer down. */
export interface ByteDuplex {
  /** Undefined: the peer has ended. Throws when the connection breaks. */
  read(): Promise<Uint8Array | undefined>
  write(bytes: Uint8Array): Promise<void>
  close(): void
}

/** The streams of workerd's TCP sockets. */
export interface ByteStreams {
  readonly readable: ReadableStream<Uint8Array>
  readonly writable: WritableStream<Uint8Array>
  close(): Promise<unknown>
}

export function openDuplex(streams: ByteStreams): ByteDuplex {
  const reader = streams.readable.getReader()
  const writer = streams.writable.getWriter()
  // Reported by the next read or write.
  for (const stream of [reader, writer]) stream.closed.catch(() => undefined)
  return {
    read: async () => (await reader.read()).value,
    write: (bytes) => writer.write(bytes),
    close: () => void streams.close().catch(() => undefined),
  }
}

const HEAD_END = [13, 10, 13, 10]

function findHeadEnd(bytes: Uint8Array): number {
  for (let at = bytes.indexOf(13); at >= 0; at = bytes.indexOf(13, at + 1))
    if (HEAD_END.every((byte, index) => bytes[at + index] === byte)) return at
  return -1
}

/** Reads the head of a response, and returns the bytes after it. */
export async function readResponseHead(
  duplex: ByteDuplex,
): Promise<{ readonly head: ResponseHead; readonly rest: Uint8Array }> {
  let received = new Uint8Array(0)
  for (;;) {
    const bytes = await duplex.read()
    if (bytes === undefined) throw new HttpProtocolError('the connection ended before a response')
    received = concatBytes([received, bytes])
    const end = findHeadEnd(received)
    if (end >= 0) {
      const head = parseResponseHead(new TextDecoder('latin1').decode(received.subarray(0, end)))
      return { head, rest: received.subarray(end + HEAD_END.length) }
    }
    if (received.length > MAX_HEAD_BYTES) throw new HttpProtocolError('the head of the response is too long')
  }
}
