import { type ErrorCode, type ErrorDetails, isErrorCode, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { toSandwireError } from './disk-full.ts'
import { readBoundedJson } from './http/read-bounded.ts'
import { AUDITED_HEADER, CODE_HEADER } from './http/respond.ts'

/** The result of calling an object. Errors are values, because an exception loses its code between objects. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false
      readonly code: ErrorCode
      readonly message: string
      readonly retryAfterMs?: number | undefined
      /** The object has recorded the error in the audit, if it belongs there. */
      readonly isAudited?: true
      readonly details?: ErrorDetails
    }

/** Runs and catches; `onInternalError` gets the cause of an `internal` error. */
export async function settle<T>(
  run: () => T | Promise<T>,
  onInternalError: (cause: unknown) => void,
): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await run() }
  } catch (caught) {
    const error = toSandwireError(caught)
    const { code, message, cause, retryAfterMs, details } = error
    if (code === 'internal') onInternalError(cause)
    return {
      ok: false,
      code,
      message,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(Object.keys(details).length === 0 ? {} : { details }),
      ...(isAudited(error) ? { isAudited: true } : {}),
    }
  }
}

/** The cause of an error that an object has recorded in the audit. */
class Audited extends Error {}

/** True for an error that an object has recorded in the audit, if it belongs there. */
export function isAudited({ cause }: SandwireError): boolean {
  return cause instanceof Audited
}

export function errorOf({
  code,
  message,
  retryAfterMs,
  details = {},
  isAudited: wasAudited,
}: Extract<Outcome<never>, { ok: false }>): SandwireError {
  return new SandwireError(code, message, {
    retryAfterMs,
    details,
    ...(wasAudited === true ? { cause: new Audited() } : {}),
  })
}

/** Returns the value, or throws the error. */
export function unwrap<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value
  throw errorOf(outcome)
}

const MAX_ERROR_BYTES = 64 * 1024
const objectError = z.object({
  error: z.object({ code: z.string().refine(isErrorCode), message: z.string() }),
})

/** The error of a response to HEAD, which has no body. */
function headError({ headers, body }: Response): z.infer<typeof objectError>['error'] | undefined {
  const code = headers.get(CODE_HEADER)
  if (body !== null || code === null || !isErrorCode(code)) return undefined
  return { code, message: 'Request failed' }
}

/** The error of a response of a sandbox's object to `fetch`. */
export async function readObjectError(response: Response): Promise<SandwireError> {
  const error =
    headError(response) ?? objectError.parse(await readBoundedJson(response, MAX_ERROR_BYTES)).error
  const waitSeconds = response.headers.get('retry-after')
  const retryAfterMs = waitSeconds === null ? undefined : Number(waitSeconds) * 1000
  const wasAudited = response.headers.has(AUDITED_HEADER)
  return errorOf({ ok: false, ...error, retryAfterMs, ...(wasAudited ? { isAudited: true } : {}) })
}
