/** Letters and symbols without a shape, as wide as others: Hangul fillers and the empty braille pattern. */
const BLANK = '\\u115f\\u1160\\u2800\\u3164\\uffa0'

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
