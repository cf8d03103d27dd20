import type { EventFeed } from './event-feed.ts'
import type { StoredEntry } from './journal-file.ts'

/** Comments keep proxies from closing a stream without events. */
const COMMENT_MS = 15_000
/** Bytes that wait in a stream before the viewer counts as slow. */
const HIGH_WATER_BYTES = 256 * 1024

/** Events as `text/event-stream`. A slow client is served from the journal at its own pace. */
export function streamEvents(feed: EventFeed, after: number): Response {
  const encoder = new TextEncoder()
  let timer: ReturnType<typeof setInterval> | undefined
  let close: () => void = () => undefined
  let drained: () => void = () => undefined
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const push = (text: string): boolean => {
          controller.enqueue(encoder.encode(text))
          return (controller.desiredSize ?? 0) > 0
        }
        const viewer = {
          send: (entry: StoredEntry) => push(formatEntry(entry)),
          partial: (json: string) => {
            if ((controller.desiredSize ?? 0) > 0) push(`event: partial\ndata: ${json}\n\n`)
          },
          end: () => {
            clearInterval(timer)
            controller.close()
          },
        }
        close = () => feed.remove(viewer)
        drained = () => feed.drained(viewer)
        timer = setInterval(() => push(': waiting\n\n'), COMMENT_MS)
        feed.add(viewer, after)
      },
      pull: () => drained(),
      cancel: () => {
        clearInterval(timer)
        close()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER_BYTES }),
  )
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
  })
}

function formatEntry({ seq, type, json }: StoredEntry): string {
  return `id: ${seq}\nevent: ${type}\ndata: ${json}\n\n`
}
