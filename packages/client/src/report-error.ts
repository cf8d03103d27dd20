/** Where goes what a caller's own code has thrown, when the caller has not said. */
export function reportError(error: unknown): void {
  // oxlint-disable-next-line no-console -- Silence would hide a mistake, and to throw it again would end more than the call.
  console.error(error)
}
