import { attach, type AttachHandle } from '@sandwire/client'

/** What the test calls in the page. */
export interface PageApi {
  /** Sends `bytes` patterned bytes through `cat` and returns the SHA-256 of what was sent and what came back. */
  roundTrip(
    url: string,
    bytes: number,
  ): Promise<{ sent: string; received: string; code: number | null; reconnects: number }>
  /** Connects and returns how the attachment ended or failed. */
  failure(url: string): Promise<string>
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function countReconnects(handle: AttachHandle): () => number {
  let reconnects = 0
  handle.status.subscribe((status) => {
    if (status.kind === 'reconnecting') reconnects += 1
  })
  return () => reconnects
}

const api: PageApi = {
  async roundTrip(url, bytes) {
    const sent = Uint8Array.from({ length: bytes }, (_, index) => (index * 31 + (index >> 8)) & 0xff)
    const received = new Uint8Array(bytes)
    let filled = 0
    const handle = attach({
      url,
      request: { cmd: 'cat' },
      acknowledge: 'manual',
      onOutput: (_stream, chunk, done) => {
        received.set(chunk, filled)
        filled += chunk.byteLength
        requestAnimationFrame(done)
      },
    })
    const reconnects = countReconnects(handle)
    for (let from = 0; from < bytes; from += 10_000) await handle.write(sent.subarray(from, from + 10_000))
    handle.eof()
    const { code } = await handle.exit
    return { sent: await sha256(sent), received: await sha256(received), code, reconnects: reconnects() }
  },

  async failure(url) {
    const handle = attach({ url, request: { cmd: 'true' }, connectForMs: 1_000, onOutput: () => {} })
    return handle.exit.then(
      () => 'exited',
      (error: unknown) => String(error),
    )
  },
}

Object.assign(globalThis, { api })
