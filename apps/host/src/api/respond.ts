import { ERRORS, SandwireError } from '@sandwire/protocol'

/** Largest body that is read. The largest part of one is the environment of a sandbox. */
export const MAX_BODY_BYTES = 2 * 1024 * 1024

/** The one shape of an error over HTTP. Causes and stacks stay here. */
export function respondError(error: SandwireError, requestId: string): Response {
  const { code, message } = error
  return Response.json({ error: { code, message, request_id: requestId } }, { status: ERRORS[code].status })
}

export function refuse(code: 'bad_request' | 'unauthorized', message: string): never {
  throw new SandwireError(code, message)
}

/** Reads a JSON body; throws `bad_request` or `frame_too_large`. */
export async function readJson(request: Request): Promise<unknown> {
  const text = await request.text()
  if (Buffer.byteLength(text) > MAX_BODY_BYTES)
    throw new SandwireError('frame_too_large', `Cannot read the request: over ${MAX_BODY_BYTES} bytes`)
  try {
    return JSON.parse(text)
  } catch {
    return refuse('bad_request', 'Cannot read the request: not JSON')
  }
}
