import type { ProxiedRequest } from '../workspace-proxy/requests.ts'
import type { StatusEvent, StatusEvents } from './status-events.ts'

/** Shows proxies and clients that the connection is open; finds out when the client has gone. */
const HEARTBEAT_MS = 15_000
/** Until the response ends; browsers then connect again, which authorizes them again. */
const MAX_STREAM_MS = 15 * 60_000
/** Events that wait for a slow client; beyond that its stream ends. */
const MAX_WAITING = 256

const encoder = new TextEncoder()

function format({ event, data }: StatusEvent): Uint8Array {
  return encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}

export interface StatusStreamOptions {
  readonly events: Pick<StatusEvents, 'subscribe'>
  /** Aborts the stream when its authorization is revoked. */
  readonly request: ProxiedRequest
  /** Events that describe the present state, sent first. */
  readonly first: readonly StatusEvent[]
  /** False: the stream ends with the next heartbeat, so that it does not keep the object of a stopped sandbox. */
  readonly isActive: () => boolean
  /** Keeps the object alive until the work is done. */
  readonly hold: (work: Promise<unknown>) => void
}

/** Server-sent events of a sandbox. */
export function openStatusStream(options: StatusStreamOptions): ReadableStream<Uint8Array> {
  const { readable, writable } = new IdentityTransformStream()
  options.request.beginResponse(MAX_STREAM_MS)
  options.hold(send(writable.getWriter(), options))
  return readable
}

async function send(
  writer: WritableStreamDefaultWriter<Uint8Array>,
  { events, request, first, isActive }: StatusStreamOptions,
): Promise<void> {
  const waiting = [...first]
  let wake = Promise.withResolvers<void>()
  const unsubscribe = events.subscribe((event) => {
    waiting.push(event)
    wake.resolve()
  })
  const onAbort = (): void => {
    // Also ends a write that the client does not read.
    void writer.abort(request.signal.reason).catch(() => undefined)
    wake.resolve()
  }
  request.signal.addEventListener('abort', onAbort, { once: true })
  try {
    while (!request.signal.aborted && waiting.length <= MAX_WAITING) {
      const next = waiting.shift()
      if (next !== undefined) {
        await writer.write(format(next))
        continue
      }
      wake = Promise.withResolvers()
      const timer = setTimeout(wake.resolve, HEARTBEAT_MS)
      await wake.promise
      clearTimeout(timer)
      if (waiting.length > 0) continue
      if (!isActive()) break
      await writer.write(encoder.encode(':\n\n'))
    }
    await writer.close()
  } catch {
    // The client has disconnected, or the authorization was revoked.
  } finally {
    unsubscribe()
    request.end()
  }
}
