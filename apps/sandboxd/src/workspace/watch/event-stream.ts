import { raceTimeout } from '@sandwire/async'
import type { Notice } from './notices.ts'
import type { Watching } from './watch-service.ts'

/** Shorter than what proxies on the way take for a dead connection. */
const HEARTBEAT_MS = 15_000

/** A comment, which nobody is told of. */
const NOTHING = ':\n\n'

/** What a client watches, as server-sent events, asked for one by one. Canceling ends the watching. */
export function toEventStream(watching: Watching, heartbeatMs = HEARTBEAT_MS): ReadableStream<Uint8Array> {
  let waiting: Promise<Notice | undefined> | undefined
  let hasBegun = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // An answer begins with its first bytes, and a large tree is watched only after a while.
        if (!hasBegun) {
          hasBegun = true
          controller.enqueue(Buffer.from(NOTHING))
          return
        }
        waiting ??= watching.next()
        const notice = await raceTimeout(waiting, heartbeatMs, 'nothing')
        if (notice !== 'nothing') waiting = undefined
        if (notice === undefined) {
          watching.close()
          controller.close()
        } else controller.enqueue(Buffer.from(notice === 'nothing' ? NOTHING : writeEvent(notice)))
      },
      cancel: () => watching.close(),
    },
    { highWaterMark: 0 },
  )
}

/** JSON has no line ends, so that one line of data holds it. */
function writeEvent(notice: Notice): string {
  return `event: ${notice.kind}\ndata: ${JSON.stringify(dataOf(notice))}\n\n`
}

function dataOf(notice: Notice): object {
  switch (notice.kind) {
    case 'ready':
      return { folders: notice.folders }
    case 'change':
      return { paths: notice.changes }
    case 'overflow':
      return { reason: notice.reason }
  }
}
