import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import { nameFault } from './disk-full.ts'

/** What a call of an object came to. Errors cross the border between objects as values: a thrown one loses its code. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false
      readonly code: ErrorCode
      readonly message: string
      readonly retryAfterMs?: number | undefined
    }

/** Runs and catches; `onFault` hears of what is nobody's fault but ours. */
export async function settle<T>(
  run: () => T | Promise<T>,
  onCallbackError: (cause: unknown) => void,
): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await run() }
  } catch (caught) {
    const { code, message, cause, retryAfterMs } = nameFault(caught)
    if (code === 'internal') onCallbackError(cause)
    return { ok: false, code, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  }
}

/** The error of an outcome that is one. */
export function errorOf({
  code,
  message,
  retryAfterMs,
}: Extract<Outcome<never>, { ok: false }>): SandwireError {
  return new SandwireError(code, message, { retryAfterMs })
}

/** The value, or the error thrown on this side. */
export function unwrap<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value
  throw errorOf(outcome)
}
