import { ERRORS, type SandwireError } from './errors.ts'

/** Default waits: short when time alone helps, long when the user has to act. */
const SOON_SECONDS = 1
const LATER_SECONDS = 60

type Refused = Pick<SandwireError, 'code'> & Partial<Pick<SandwireError, 'retryAfterMs'>>

/** Seconds until a rate-limited request may be retried; undefined for other errors. */
export function retryAfterSeconds({ code, retryAfterMs }: Refused): number | undefined {
  const { status, retryable } = ERRORS[code]
  if (retryAfterMs !== undefined) return Math.max(1, Math.ceil(retryAfterMs / 1000))
  if (status !== 429) return undefined
  return retryable ? SOON_SECONDS : LATER_SECONDS
}

/** The error message with the wait, for frames, which have no Retry-After header. */
export function formatRetryMessage(error: Refused & Pick<SandwireError, 'message'>): string {
  const waitSeconds = retryAfterSeconds(error)
  return waitSeconds === undefined ? error.message : `${error.message}: try again in ${waitSeconds} s`
}
