import { isErrorCode, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { readBoundedJson } from '../http/read-bounded.ts'

const MAX_ERROR_BYTES = 64 * 1024
const objectError = z.object({
  error: z.object({ code: z.string().refine(isErrorCode), message: z.string() }),
})

/** The error that a sandbox's object answered with. */
export async function readError(response: Response): Promise<SandwireError> {
  const { error } = objectError.parse(await readBoundedJson(response, MAX_ERROR_BYTES))
  const waitSeconds = response.headers.get('retry-after')
  const retryAfterMs = waitSeconds === null ? undefined : Number(waitSeconds) * 1000
  return new SandwireError(error.code, error.message, { retryAfterMs })
}
