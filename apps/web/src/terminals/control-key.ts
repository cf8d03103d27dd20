/** What a key sends when Ctrl is held: letters and some signs have a control character, everything else is itself. */
export function withControl(text: string): string {
  const code = text.toUpperCase().charCodeAt(0)
  const isKnown = text.length === 1 && code >= 0x3f && code <= 0x5f
  if (text === ' ') return '\0'
  if (text === '?') return '\u{7f}'
  return isKnown ? String.fromCharCode(code & 0x1f) : text
}
