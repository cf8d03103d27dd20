import { concatBytes } from '@sandwire/bytes'
import type { UpstreamRequest } from '../provider.ts'
import { unreachable } from '../upstream.ts'
import { type ByteDuplex, readResponseHead } from './byte-duplex.ts'
import {
  BodyDecoder,
  bodyLengthOf,
  encodeChunk,
  formatRequestHead,
  LAST_CHUNK,
  type ResponseHead,
} from './http-message.ts'

/** The host name that sandboxd expects. */
export const SANDBOXD_HOST = 'localhost'
/** Set by this client, whatever a request says; hop-by-hop headers of RFC 9110 are not passed on. */
const DROPPED: readonly string[] = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'proxy-authorization',
  'proxy-authenticate',
]

function toBytes(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? new TextEncoder().encode(body) : body
}

async function writeStream(duplex: ByteDuplex, body: ReadableStream): Promise<void> {
  const reader: ReadableStreamDefaultReader<unknown> = body.getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read())
      if (read.value instanceof Uint8Array && read.value.length > 0)
        await duplex.write(encodeChunk(read.value))
    await duplex.write(LAST_CHUNK)
  } catch (error) {
    void reader.cancel(error).catch(() => undefined)
    throw error
  }
}

/** The body as a byte stream, as workerd's own bodies are: a part is read when its consumer asks for it. */
function streamBody(duplex: ByteDuplex, first: Uint8Array, decoder: BodyDecoder): ReadableStream<Uint8Array> {
  let pending = decoder.push(first)
  const end = (controller: ReadableByteStreamController): void => {
    duplex.close()
    controller.close()
    // A read into a buffer of its own ends only with a response.
    controller.byobRequest?.respond(0)
  }
  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        while (pending.length === 0 && !decoder.isDone) {
          const bytes = await duplex.read()
          if (bytes === undefined) {
            decoder.end()
            return end(controller)
          }
          pending = decoder.push(bytes)
        }
        // A copy, because the stream takes the buffer, which may hold more than these parts.
        if (pending.length > 0) controller.enqueue(concatBytes(pending.splice(0)))
        if (decoder.isDone) end(controller)
      } catch (error) {
        duplex.close()
        controller.error(unreachable(error))
      }
    },
    cancel: () => duplex.close(),
  })
}

function responseOf(head: ResponseHead, rest: Uint8Array, duplex: ByteDuplex, method: string): Response {
  const decoder = new BodyDecoder(bodyLengthOf(head, method))
  const headers = new Headers(head.headers)
  for (const name of ['transfer-encoding', 'connection', 'keep-alive']) headers.delete(name)
  const isEmpty = decoder.isDone
  if (isEmpty) duplex.close()
  return new Response(isEmpty ? null : streamBody(duplex, rest, decoder), { status: head.status, headers })
}

/** Sends one request over a connection of its own and returns the response; redirects are not followed. */
export async function sendHttp(
  duplex: ByteDuplex,
  prefix: string,
  { method, path, headers, body, signal }: UpstreamRequest,
): Promise<Response> {
  const abort = (): void => duplex.close()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    signal?.throwIfAborted()
    const passed = Object.entries(headers).filter(([name]) => !DROPPED.includes(name.toLowerCase()))
    const isStream = body instanceof ReadableStream
    const bytes = body === undefined || isStream ? new Uint8Array(0) : toBytes(body)
    const framing: [string, string][] = isStream
      ? [['Transfer-Encoding', 'chunked']]
      : bytes.length > 0 || method !== 'GET'
        ? [['Content-Length', String(bytes.length)]]
        : []
    const lines: [string, string][] = [
      ['Host', SANDBOXD_HOST],
      ['Connection', 'close'],
      ...passed,
      ...framing,
    ]
    await duplex.write(formatRequestHead(method, `${prefix}${path}`, lines))
    if (bytes.length > 0) await duplex.write(bytes)
    // A response may come before the body was read, for example if it is refused.
    const writing = isStream ? writeStream(duplex, body) : Promise.resolve()
    writing.catch(() => undefined)
    const { head, rest } = await readResponseHead(duplex)
    return responseOf(head, rest, duplex, method)
  } catch (error) {
    duplex.close()
    throw error
  } finally {
    if (signal?.aborted === true) duplex.close()
  }
}
