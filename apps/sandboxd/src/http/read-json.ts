import { SandwireError } from '@sandwire/protocol'
import { refuse } from './respond.ts'

/** Largest JSON body of a request, where a route allows no more. */
const MAX_BODY_BYTES = 256 * 1024

/** The JSON body of a request; throws `frame_too_large` and `bad_request`. No more than `maxBytes` of it are ever held. */
export async function readJson(request: Request, maxBytes = MAX_BODY_BYTES): Promise<unknown> {
  const bytes = await readBody(request, maxBytes)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new SandwireError('bad_request', 'Cannot read the body: not JSON')
  }
}

async function readBody(request: Request, maxBytes: number): Promise<Uint8Array> {
  const tooLarge = `Cannot read the body: more than ${maxBytes} bytes`
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) refuse('frame_too_large', tooLarge)
  const chunks: Uint8Array[] = []
  let size = 0
  // A body in chunks does not say how long it is.
  for await (const chunk of request.body?.values({ preventCancel: true }) ?? []) {
    size += chunk.byteLength
    if (size > maxBytes) refuse('frame_too_large', tooLarge)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
