// oxlint-disable-next-line no-control-regex -- Keys begin with one.
const ARROW = /^\u{1b}[[O]([A-D])$/u

/** What a key sends when Ctrl is held: letters and some signs have a control character, arrows say so, everything else is itself. */
export function withControl(text: string): string {
  const arrow = ARROW.exec(text)?.[1]
  if (arrow !== undefined) return `\u{1b}[1;5${arrow}`
  const code = text.toUpperCase().charCodeAt(0)
  const isKnown = text.length === 1 && code >= 0x3f && code <= 0x5f
  if (text === ' ') return '\0'
  if (text === '?') return '\u{7f}'
  return isKnown ? String.fromCharCode(code & 0x1f) : text
}
