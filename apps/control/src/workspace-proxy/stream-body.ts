import { SandwireError } from '@sandwire/protocol'

/** Bytes per read where the body is counted: large enough to make counting cheap, small enough to hold. */
const CHUNK_BYTES = 256 * 1024

export interface StreamedBody {
  readonly body: ReadableStream<Uint8Array>
  /** Resolves when all of it was read; rejects when either end broke off. */
  readonly done: Promise<void>
}

export interface StreamOptions {
  /** Undefined when it is not known; else within the bound. */
  readonly length: number | undefined
  readonly maxBytes: number
  /** Aborts both ends. */
  readonly signal: AbortSignal
  /** Called before the body is aborted for being too large, so that its reader learns the reason. */
  readonly onTooLarge: (reason: SandwireError) => void
  /** When the reader must accept each chunk in time; absent: it may take as long as it likes. */
  readonly writeTimeout?: WriteTimeout
}

interface WriteTimeout {
  readonly ms: number
  /** Must abort the body. */
  readonly onTimeout: () => void
}

/**
 * Streams a body with back-pressure and without buffering it. A body of known length fails when its length is another; the
 * runtime copies it by itself unless each write has a timeout.
 */
export function streamBody(
  source: ReadableStream<Uint8Array>,
  { length, ...bounds }: StreamOptions,
): StreamedBody {
  const { signal, writeTimeout } = bounds
  const { readable, writable } =
    length === undefined ? new IdentityTransformStream() : new FixedLengthStream(length)
  if (length !== undefined && writeTimeout === undefined)
    return { body: readable, done: source.pipeTo(writable, { signal }) }
  return { body: readable, done: copyCounted(source, writable, bounds) }
}

async function writeInTime(written: Promise<void>, timeout: WriteTimeout | undefined): Promise<void> {
  const timer = timeout === undefined ? null : setTimeout(timeout.onTimeout, timeout.ms)
  try {
    await written
  } finally {
    clearTimeout(timer)
  }
}

async function copyCounted(
  source: ReadableStream<Uint8Array>,
  target: WritableStream<Uint8Array>,
  { maxBytes, signal, onTooLarge, writeTimeout }: Omit<StreamOptions, 'length'>,
): Promise<void> {
  // A TransformStream would do the same in chunks of a few KiB, each of them a turn of the event loop.
  const reader = source.getReader({ mode: 'byob' })
  const writer = target.getWriter()
  const abort = async (reason: unknown): Promise<void> => {
    await Promise.allSettled([reader.cancel(reason), writer.abort(reason)])
  }
  const onAbort = (): void => void abort(signal.reason)
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
        const reason = new SandwireError('frame_too_large', `The body is larger than ${maxBytes} bytes`)
        onTooLarge(reason)
        throw reason
      }
      await writeInTime(writer.write(value), writeTimeout)
      buffer = value.buffer
    }
    signal.throwIfAborted()
    await writer.close()
  } catch (error) {
    await abort(error)
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
