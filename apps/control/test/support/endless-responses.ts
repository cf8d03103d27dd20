/** Interval between chunks: short enough that the connection is never idle. */
const CHUNK_INTERVAL_MS = 20
const CHUNK = new TextEncoder().encode(' ')
const HEADERS = {
  'content-type': 'application/json',
  'sandwire-from': '0',
  'sandwire-next': '9',
  'sandwire-end': '9',
}

/** Creates JSON responses that begin immediately and never end. */
export class EndlessResponses {
  /** Responses so far. */
  started = 0
  /** Responses that were not canceled. */
  open = 0

  respond(status = 200): Response {
    this.started += 1
    this.open += 1
    let timer: Timer | undefined
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        timer = setInterval(() => controller.enqueue(CHUNK), CHUNK_INTERVAL_MS)
      },
      cancel: () => {
        clearInterval(timer)
        this.open -= 1
      },
    })
    return new Response(body, { status, headers: HEADERS })
  }
}
