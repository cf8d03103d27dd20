import { StartFailure } from '@sandwire/internal-api'
import { ERRORS, SandwireError } from '@sandwire/protocol'
import { FullDisk, MissingFile } from '../data/folder-problem.ts'

/** Largest accepted body; most of it may be the environment of a sandbox. */
export const MAX_BODY_BYTES = 2 * 1024 * 1024

/** The error format of the host API. Of the cause, only the folder of a full disk, a missing file or the reason of a failed start is sent. */
export function respondError(error: SandwireError, requestId: string): Response {
  const { code, message, cause } = error
  const details = {
    ...(cause instanceof FullDisk && { full_disk: cause.folder }),
    ...(cause instanceof MissingFile && { missing_file: cause.file }),
    ...(cause instanceof StartFailure && { start_failure: cause.reason }),
  }
  return Response.json(
    { error: { code, message, request_id: requestId, ...details } },
    { status: ERRORS[code].status },
  )
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
