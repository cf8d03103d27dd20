/** What is known of a running sandbox when its alarm rings. */
export interface IdleFacts {
  readonly nowMs: number
  /** Latest input, output, attach or start. */
  readonly lastActivityMs: number
  /** Null: never. */
  readonly sleepAfterMs: number | null
  /** A session is marked as one to keep the sandbox awake for. */
  readonly hasPin: boolean
}

/** Whether nothing has moved for so long that the sandbox may stop. An attachment alone is no activity. */
export function isIdle({ nowMs, lastActivityMs, sleepAfterMs, hasPin }: IdleFacts): boolean {
  return sleepAfterMs !== null && !hasPin && nowMs - lastActivityMs >= sleepAfterMs
}

/** When an idle sandbox stops: what it was created with, else the server's default, which never loses files. */
export function sleepAfter(
  asked: number | null | undefined,
  fallbackMs: number,
  filesSurviveStop: boolean,
): number | null {
  if (asked !== undefined) return asked
  return filesSurviveStop ? fallbackMs : null
}
