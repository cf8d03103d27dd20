import { INVISIBLE } from '@sandwire/protocol'

/** Default length limit. */
const MAX_CHARS = 120

/** Makes untrusted text safe to show outside a terminal: one line without invisible characters. */
export function printable(text: string, maxChars = MAX_CHARS): string {
  return text.replaceAll(INVISIBLE, '').trim().slice(0, maxChars)
}

/** Everything invisible, except tabs, line breaks, and what joins the parts of an emoji. */
const UNSEEN = new RegExp(
  String.raw`(?![\t\r\n]|(?<=\p{Extended_Pictographic}\ufe0f?)[\ufe0f\u200d])${INVISIBLE.source}`,
  'gu',
)
const DELETE = 0x7f

/**
 * A stand-in for an invisible character: its key, as `<^C>`, or its code point. Many fonts lack the Unicode control
 * pictures.
 */
function signOf(character: string): string {
  const code = character.codePointAt(0) ?? 0
  const isKey = code < 0x20 || code === DELETE
  return isKey ? `<^${String.fromCharCode(code ^ 0x40)}>` : `<U+${code.toString(16).toUpperCase()}>`
}

/** Text of several lines that the user has to judge, with visible stand-ins for what could hide or reorder parts of it. */
export function revealInvisible(text: string): string {
  return text.replaceAll(UNSEEN, signOf)
}
