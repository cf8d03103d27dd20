/** A key that is for this program and not for the remote. */
export interface EscapeKey {
  readonly byte: number
  /** As people say it. */
  readonly label: string
}

export const DEFAULT_ESCAPE = '^]'

/** Reads `^]`, `^a`, one printable character, or `none` (null); undefined when it is none of these. */
export function parseEscapeKey(text: string): EscapeKey | null | undefined {
  if (text === 'none') return null
  const control = /^\^([@-_a-z?])$/.exec(text)?.[1]?.toUpperCase()
  if (control !== undefined) {
    const byte = control === '?' ? 0x7f : control.charCodeAt(0) & 0x1f
    return { byte, label: `Ctrl+${control}` }
  }
  return /^[\x20-\x7e]$/.test(text) ? { byte: text.charCodeAt(0), label: text } : undefined
}

/** What stands before the key, and whether the key was there. What stands behind it is for nobody. */
export function splitAtEscape(
  bytes: Uint8Array,
  escape: EscapeKey | null,
): { before: Uint8Array; isEscaped: boolean } {
  const at = escape === null ? -1 : bytes.indexOf(escape.byte)
  return at < 0 ? { before: bytes, isEscaped: false } : { before: bytes.subarray(0, at), isEscaped: true }
}
