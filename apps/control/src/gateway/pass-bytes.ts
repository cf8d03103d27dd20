import { SandwireError } from '@sandwire/protocol'

/** Bytes that are moved at once where they are counted: enough that counting costs nothing, little enough to hold. */
const CHUNK_BYTES = 256 * 1024

/** A body on its way. */
export interface Passing {
  readonly body: ReadableStream<Uint8Array>
  /** Resolves when all of it was read; rejects when either end broke off. */
  readonly done: Promise<void>
}

export interface PassOptions {
  /** Undefined when it was not said; else within the bound. */
  readonly length: number | undefined
  readonly maxBytes: number
  /** Breaks it off, for both ends. */
  readonly signal: AbortSignal
  /** Told that it is too much before it breaks off, so that whoever sees it break knows why. */
  readonly onTooMuch: (reason: SandwireError) => void
  /** Where the other end has to take each piece in time; without it, whoever reads may take as long as they like. */
  readonly patience?: Patience
}

export interface Patience {
  readonly ms: number
  /** Told when time is up; ends it all. */
  readonly onLate: () => void
}

/**
 * Passes a body on as fast as it is read, and holds next to nothing of it. Where its length is known it breaks off when it is
 * not as long as was said, and the runtime moves it by itself unless there is something to look at on the way.
 */
export function passBytes(source: ReadableStream<Uint8Array>, { length, ...bounds }: PassOptions): Passing {
  const { signal, patience } = bounds
  const { readable, writable } =
    length === undefined ? new IdentityTransformStream() : new FixedLengthStream(length)
  if (length !== undefined && patience === undefined)
    return { body: readable, done: source.pipeTo(writable, { signal }) }
  return { body: readable, done: passCounted(source, writable, bounds) }
}

/** Waits until a piece is taken. */
async function taken(written: Promise<void>, patience: Patience | undefined): Promise<void> {
  const timer = patience === undefined ? null : setTimeout(patience.onLate, patience.ms)
  try {
    await written
  } finally {
    clearTimeout(timer)
  }
}

async function passCounted(
  source: ReadableStream<Uint8Array>,
  target: WritableStream<Uint8Array>,
  { maxBytes, signal, onTooMuch, patience }: Omit<PassOptions, 'length'>,
): Promise<void> {
  // A transform stream would do the same in pieces of a few KiB, each of them a turn of the event loop.
  const reader = source.getReader({ mode: 'byob' })
  const writer = target.getWriter()
  const breakOff = async (reason: unknown): Promise<void> => {
    await Promise.allSettled([reader.cancel(reason), writer.abort(reason)])
  }
  const onAbort = (): void => void breakOff(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    let bytes = 0
    let buffer = new ArrayBuffer(CHUNK_BYTES)
    for (;;) {
      signal.throwIfAborted()
      const { done, value } = await reader.read(new Uint8Array(buffer))
      if (done || value === undefined) break
      bytes += value.byteLength
      if (bytes > maxBytes) {
        const reason = new SandwireError('frame_too_large', `Cannot pass on more than ${maxBytes} bytes`)
        onTooMuch(reason)
        throw reason
      }
      await taken(writer.write(value), patience)
      buffer = value.buffer
    }
    signal.throwIfAborted()
    await writer.close()
  } catch (error) {
    await breakOff(error)
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
