import { ERRORS, type SandwireError } from './errors.ts'

/** What waiting is worth where nobody knows better: a moment when time alone helps, a while when somebody has to act. */
const SOON_SECONDS = 1
const LATER_SECONDS = 60

type Refused = Pick<SandwireError, 'code'> & Partial<Pick<SandwireError, 'retryAfterMs'>>

/** Seconds after which what was too much may be tried again; undefined when it was not that. */
export function retryAfterSeconds({ code, retryAfterMs }: Refused): number | undefined {
  const { status, retryable } = ERRORS[code]
  if (retryAfterMs !== undefined) return Math.max(1, Math.ceil(retryAfterMs / 1000))
  if (status !== 429) return undefined
  return retryable ? SOON_SECONDS : LATER_SECONDS
}

/** The text for a frame, which has no header to say the wait in. */
export function formatRetryMessage(error: Refused & Pick<SandwireError, 'message'>): string {
  const waitSeconds = retryAfterSeconds(error)
  return waitSeconds === undefined ? error.message : `${error.message}: try again in ${waitSeconds} s`
}
