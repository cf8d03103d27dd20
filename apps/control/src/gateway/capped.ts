import { SandwireError } from '@sandwire/protocol'

/** What passes bytes on. */
export interface Pipe {
  readonly readable: ReadableStream<Uint8Array>
  readonly writable: WritableStream<Uint8Array>
}

/** Counts bytes that pass, and breaks off past a bound. */
function counting(maxBytes: number): Pipe {
  let bytes = 0
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength
      if (bytes > maxBytes)
        controller.error(
          new SandwireError('frame_too_large', `Cannot pass on more than ${maxBytes} bytes of the body`),
        )
      else controller.enqueue(chunk)
    },
  })
}

/**
 * A pipe for a body of this length, which must be within the bound already. The runtime moves its bytes by itself and breaks
 * off when it is shorter or longer than was said; only bytes that nobody has counted are counted here.
 */
export function pipeOf(length: number | undefined, maxBytes: number): Pipe {
  return length === undefined ? counting(maxBytes) : new FixedLengthStream(length)
}
