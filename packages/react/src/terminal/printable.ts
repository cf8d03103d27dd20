/** Longest title that is shown, where nobody says otherwise. */
const MAX_CHARS = 120

/** Text of a program as it may stand outside its terminal: no control characters, no changes of direction, one line. */
export function printable(text: string, maxChars = MAX_CHARS): string {
  return text
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .trim()
    .slice(0, maxChars)
}
