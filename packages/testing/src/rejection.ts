/**
 * The error a promise rejects with; throws when it fulfils. Used in place of Bun's `expect(…).rejects`, which
 * turns the event loop inside the call and starves what the promise waits for.
 */
export async function rejectionOf(promise: Promise<unknown>): Promise<Error> {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    if (error instanceof Error) return error
    throw new TypeError(`Expected an error: rejected with "${String(error)}"`, { cause: error })
  }
  throw new Error(`Expected a rejection: promise fulfilled with "${String(value)}"`)
}
