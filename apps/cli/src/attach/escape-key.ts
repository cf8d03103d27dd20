/** The key that detaches instead of being sent. */
export interface EscapeKey {
  readonly byte: number
  /** Name of the key, such as `Ctrl+]`. */
  readonly label: string
}

export const DEFAULT_ESCAPE = '^]'

/** Parses `^]`, `^a`, one printable character, or `none` (null); undefined otherwise. */
export function parseEscapeKey(text: string): EscapeKey | null | undefined {
  if (text === 'none') return null
  const control = /^\^([@-_a-z?])$/.exec(text)?.[1]?.toUpperCase()
  if (control !== undefined) {
    const byte = control === '?' ? 0x7f : control.charCodeAt(0) & 0x1f
    return { byte, label: `Ctrl+${control}` }
  }
  return /^[\x20-\x7e]$/.test(text) ? { byte: text.charCodeAt(0), label: text } : undefined
}

/** Splits input at the escape key; bytes after it are dropped. */
export function splitAtEscape(
  bytes: Uint8Array,
  escape: EscapeKey | null,
): { before: Uint8Array; isEscaped: boolean } {
  const at = escape === null ? -1 : bytes.indexOf(escape.byte)
  return at < 0 ? { before: bytes, isEscaped: false } : { before: bytes.subarray(0, at), isEscaped: true }
}
