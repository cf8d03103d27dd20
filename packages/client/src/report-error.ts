/** Logs an error of the caller's own code; the default of `onCallbackError`. */
export function reportError(error: unknown): void {
  // oxlint-disable-next-line no-console -- Ignoring it would hide a bug, and rethrowing it would end the attachment.
  console.error(error)
}
