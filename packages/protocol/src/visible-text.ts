/**
 * Letters and symbols without a shape, as wide as others, for the brackets of a pattern with the flag `u`: Hangul and Khitan fillers, the
 * empty braille pattern, the object replacement character, hieroglyphic blanks, and the empty notehead.
 */
export const BLANK = String.raw`\u115f\u1160\u2800\u3164\uffa0\ufffc\u{13441}\u{13442}\u{16fe4}\u{1d159}`

/** Everything that shows nothing, except spaces: control, format and direction characters, line separators and blanks. */
export const INVISIBLE = new RegExp(`[\\p{C}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}${BLANK}]`, 'gu')

const GAPS = new RegExp(`[\\p{C}\\p{Z}${BLANK}]+`, 'gu')
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu
/** Marks above and below one letter; more would cover other lines. */
const EXCESS_MARKS = /(?<=\p{M}{3})\p{M}+/gu

/**
 * Normalizes a user's name for display: compatibility forms, such as full-width letters, become ordinary ones, and every run of
 * blank or control characters becomes one space. Empty if nothing visible is left.
 */
export function normalizeName(text: string, maxChars: number): string {
  const visible = text
    .normalize('NFKC')
    .replaceAll(GAPS, ' ')
    .replaceAll(IGNORABLE, '')
    .replaceAll(EXCESS_MARKS, '')
    .trim()
    .slice(0, maxChars)
  // The slice may have split a surrogate pair.
  return (visible.isWellFormed() ? visible : visible.slice(0, -1)).trim()
}
