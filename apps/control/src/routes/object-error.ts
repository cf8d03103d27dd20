import { isErrorCode, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { readBoundedJson } from '../http/read-bounded.ts'
import { CODE_HEADER } from '../http/respond.ts'

const MAX_ERROR_BYTES = 64 * 1024
const objectError = z.object({
  error: z.object({ code: z.string().refine(isErrorCode), message: z.string() }),
})

/** The error of an answer to HEAD, which nobody reads the words of. */
function headError({ headers, body }: Response): z.infer<typeof objectError>['error'] | undefined {
  const code = headers.get(CODE_HEADER)
  if (body !== null || code === null || !isErrorCode(code)) return undefined
  return { code, message: 'Cannot do this' }
}

/** The error that a sandbox's object answered with. */
export async function readError(response: Response): Promise<SandwireError> {
  const error =
    headError(response) ?? objectError.parse(await readBoundedJson(response, MAX_ERROR_BYTES)).error
  const waitSeconds = response.headers.get('retry-after')
  const retryAfterMs = waitSeconds === null ? undefined : Number(waitSeconds) * 1000
  return new SandwireError(error.code, error.message, { retryAfterMs })
}
