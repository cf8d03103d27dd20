/** Characters of a foreign text that are shown. */
const MAX_CHARS = 500

/** One line of printable characters, for text that came from somewhere else and goes to a terminal. */
export function printable(text: string): string {
  return text
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, MAX_CHARS)
}
