import { SandwireError } from '@sandwire/protocol'
import { refuse } from './respond.ts'

/** Largest JSON body of a request. */
const MAX_BODY_BYTES = 256 * 1024

/** The JSON body of a request; throws `frame_too_large` and `bad_request`. */
export async function readJson(request: Request): Promise<unknown> {
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (declared > MAX_BODY_BYTES)
    refuse('frame_too_large', `Cannot read the body: more than ${MAX_BODY_BYTES} bytes`)
  const bytes = await request.bytes()
  if (bytes.byteLength > MAX_BODY_BYTES)
    refuse('frame_too_large', `Cannot read the body: more than ${MAX_BODY_BYTES} bytes`)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new SandwireError('bad_request', 'Cannot read the body: not JSON')
  }
}
