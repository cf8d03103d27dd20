/** How far an issuer's clock may be ahead; whoever signs in again takes longer than this. */
const SKEW_MS = 5_000

/** Whether a credential was issued before its sign-in ended. One that does not say may have been. */
export function isFromBefore(endedMs: number, issuedMs: number | undefined): boolean {
  return issuedMs === undefined || issuedMs <= endedMs + SKEW_MS
}
