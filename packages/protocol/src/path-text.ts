/**
 * File names are bytes, but JSON is text. Valid UTF-8 is decoded; every other byte becomes a lone surrogate from U+DC80 to
 * U+DCFF with the same last eight bits (Python's `surrogateescape`), so that any name can be converted back. In a query, a
 * path is percent-encoded bytes.
 */
const ESCAPE_BASE = 0xdc00
const REPLACEMENT = 0xfffd

/** Length of the well-formed UTF-8 sequence at an offset, or 0. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0
  if (lead < 0x80) return 1
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2
  if (lead < 0xc2 || lead > 0xf4 || at + length > bytes.length) return 0
  for (let next = at + 1; next < at + length; next += 1) if ((bytes[next] ?? 0) >> 6 !== 0b10) return 0
  const second = bytes[at + 1] ?? 0
  // Overlong forms, surrogates, and values beyond the last code point.
  if ((lead === 0xe0 && second < 0xa0) || (lead === 0xed && second > 0x9f)) return 0
  if ((lead === 0xf0 && second < 0x90) || (lead === 0xf4 && second > 0x8f)) return 0
  return length
}

export function pathFromBytes(bytes: Uint8Array): string {
  const strict = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
  const whole = strict.decode(bytes)
  if (!whole.includes(String.fromCodePoint(REPLACEMENT))) return whole
  let text = ''
  let at = 0
  while (at < bytes.length) {
    const length = sequenceLength(bytes, at)
    text +=
      length === 0
        ? String.fromCharCode(ESCAPE_BASE | (bytes[at] ?? 0))
        : strict.decode(bytes.subarray(at, at + length))
    at += Math.max(length, 1)
  }
  return text
}

/** Undefined when the text contains a surrogate that does not represent a byte. */
export function pathToBytes(text: string): Uint8Array | undefined {
  const encoder = new TextEncoder()
  if (text.isWellFormed()) return encoder.encode(text)
  const parts: number[] = []
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    if (code >= ESCAPE_BASE + 0x80 && code <= ESCAPE_BASE + 0xff) parts.push(code & 0xff)
    else if (code >= 0xd800 && code <= 0xdfff) return undefined
    else parts.push(...encoder.encode(character))
  }
  return Uint8Array.from(parts)
}

/** Percent-encodes a path for a query; undefined when it has no byte form. */
export function encodePath(text: string): string | undefined {
  const bytes = pathToBytes(text)
  if (bytes === undefined) return undefined
  let encoded = ''
  for (const byte of bytes) {
    const character = String.fromCharCode(byte)
    encoded += /[A-Za-z0-9._~/-]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}

/** Decodes a path from a query, where `+` is a space; undefined when it is not valid percent-encoding. */
export function decodePath(encoded: string): string | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(encoded)) return undefined
  const parts = encoded
    .replaceAll('+', ' ')
    .split(/(%[0-9A-Fa-f]{2})/)
    .flatMap((part) =>
      /^%[0-9A-Fa-f]{2}$/.test(part)
        ? [Number.parseInt(part.slice(1), 16)]
        : [...new TextEncoder().encode(part)],
    )
  return pathFromBytes(Uint8Array.from(parts))
}
