import { SandwireError } from '@sandwire/protocol'
import { readToEnd } from './read-bounded.ts'

export function bodyTooLarge(maxBytes: number): SandwireError {
  return new SandwireError('frame_too_large', `Cannot read the body: more than ${maxBytes} bytes`)
}

export function badBody(why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot read the body: ${why}`)
}

/** The bytes of a request's body. Throws `frame_too_large`, `bad_request` for one that breaks off, or the signal's reason. */
export async function readRequestBody(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<ArrayBuffer> {
  const read = await readToEnd(body, maxBytes, signal)
  switch (read.is) {
    case 'whole':
      return read.bytes
    case 'tooLarge':
      throw bodyTooLarge(maxBytes)
    case 'broken':
      throw badBody('it breaks off')
  }
}
