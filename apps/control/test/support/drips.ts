/** Between two drops: often enough that the connection is never idle. */
const DROP_MS = 20
const DROP = new TextEncoder().encode(' ')
const HEADERS = {
  'content-type': 'application/json',
  'sandwire-from': '0',
  'sandwire-next': '9',
  'sandwire-end': '9',
}

/** Answers in JSON that begin at once and never end. */
export class Drips {
  /** How many have begun. */
  begun = 0
  /** Those that somebody still listens to. */
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
