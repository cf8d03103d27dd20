import { raceTimeout } from '@sandwire/async'

export interface ServerSentEvent {
  readonly event: string
  readonly data: object
}

/** A source of events for one client, which closes it. */
export interface EventSource {
  /** Undefined: there are no more. */
  readonly next: () => Promise<ServerSentEvent | undefined>
  readonly close: () => void
}

/** Shorter than the idle timeouts of common proxies. */
const HEARTBEAT_MS = 15_000

/** A server-sent-event comment, which clients ignore. */
const COMMENT = ':\n\n'

/** Responds with server-sent events until the source ends or the client disconnects. */
export function respondEvents(source: EventSource, { signal }: Request): Response {
  signal.addEventListener('abort', source.close, { once: true })
  if (signal.aborted) source.close()
  return new Response(toEventStream(source), {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
  })
}

/** Writes events with backpressure. Canceling the stream closes the source. */
export function toEventStream(source: EventSource, heartbeatMs = HEARTBEAT_MS): ReadableStream<Uint8Array> {
  let waiting: Promise<ServerSentEvent | undefined> | undefined
  let hasBegun = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // Sends the first bytes at once, because the first event may take a while.
        if (!hasBegun) {
          hasBegun = true
          controller.enqueue(Buffer.from(COMMENT))
          return
        }
        waiting ??= source.next()
        const next = await raceTimeout(waiting, heartbeatMs, 'heartbeat')
        if (next !== 'heartbeat') waiting = undefined
        if (next === undefined) {
          source.close()
          controller.close()
        } else controller.enqueue(Buffer.from(next === 'heartbeat' ? COMMENT : writeEvent(next)))
      },
      cancel: () => source.close(),
    },
    { highWaterMark: 0 },
  )
}

/** JSON contains no line breaks, so one `data` line suffices. */
function writeEvent({ event, data }: ServerSentEvent): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
