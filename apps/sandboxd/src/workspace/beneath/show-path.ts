/** Longest path that a message repeats. */
const MAX_SHOWN_CHARS = 200

/**
 * A path as messages have it: in quotes, and of printable characters only, because a name can hold escape sequences and
 * marks that turn the text around.
 */
export function showPath(text: string): string {
  const shown = text
    .slice(0, MAX_SHOWN_CHARS)
    .replace(/[\p{C}\p{Zl}\p{Zp}"\\]/gu, (found) =>
      found === '"' || found === '\\' ? `\\${found}` : '\u{fffd}',
    )
  return `"${shown}${text.length > MAX_SHOWN_CHARS ? '…' : ''}"`
}
