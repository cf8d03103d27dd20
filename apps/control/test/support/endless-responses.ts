/** Interval between chunks: short enough that the connection is never idle. */
const DROP_MS = 20
const DROP = new TextEncoder().encode(' ')
const HEADERS = {
  'content-type': 'application/json',
  'sandwire-from': '0',
  'sandwire-next': '9',
  'sandwire-end': '9',
}

/** Creates JSON responses that begin immediately and never end. */
export class EndlessResponses {
  /** Responses so far. */
  begun = 0
  /** Responses that were not canceled. */
  heard = 0

  answer(status = 200): Response {
    this.begun += 1
    this.heard += 1
    let timer: Timer | undefined
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        timer = setInterval(() => controller.enqueue(DROP), DROP_MS)
      },
      cancel: () => {
        clearInterval(timer)
        this.heard -= 1
      },
    })
    return new Response(body, { status, headers: HEADERS })
  }
}
