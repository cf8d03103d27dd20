import { SandwireError } from '@sandwire/protocol'
import type { SegmentFacts } from './segment-store.ts'

/**
 * Passes a body on, its last chunk only when size and checksum are as announced: a receiver that was promised the size never
 * gets a complete body with other content.
 */
export function checkedBody(
  body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>,
  facts: SegmentFacts,
): ReadableStream {
  const { readable, writable } = new FixedLengthStream(facts.sizeBytes)
  const writer = writable.getWriter()
  const source = body instanceof Uint8Array ? [body] : body
  void pass(source, writer, facts).catch(async (error: unknown) => {
    // The receiver's error is what the caller gets.
    await writer.abort(error).catch(() => undefined)
  })
  return readable
}

async function pass(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  writer: WritableStreamDefaultWriter<Uint8Array>,
  { sizeBytes, sha256 }: SegmentFacts,
): Promise<void> {
  const digest = new crypto.DigestStream('SHA-256')
  const hasher = digest.getWriter()
  let held: Uint8Array | undefined
  let passedBytes = 0
  for await (const chunk of source) {
    passedBytes += chunk.byteLength
    if (passedBytes > sizeBytes) throw contentMismatch()
    await hasher.write(chunk)
    if (held !== undefined) await writer.write(held)
    held = chunk
  }
  await hasher.close()
  if (passedBytes !== sizeBytes || new Uint8Array(await digest.digest).toHex() !== sha256)
    throw contentMismatch()
  if (held !== undefined) await writer.write(held)
  await writer.close()
}

function contentMismatch(): SandwireError {
  return new SandwireError('store_unavailable', 'Cannot store the segment: its content is not as announced')
}
