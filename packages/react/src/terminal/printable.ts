/** Default length limit. */
const MAX_CHARS = 120

/** Makes untrusted text safe to show outside a terminal: one line without control or bidirectional characters. */
export function printable(text: string, maxChars = MAX_CHARS): string {
  return text
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .trim()
    .slice(0, maxChars)
}
