import { printable } from '@sandwire/react'

/** The pictures of control characters in Unicode: those below a space in their order, and that of DEL. */
const [PICTURES, PICTURE_OF_DEL] = [0x2400, 0x2421]

/** What stands for a character that has no sign; bytes that are no text are such ones as well. */
function signOf(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(PICTURES + code)
  return code === 0x7f ? String.fromCharCode(PICTURE_OF_DEL) : '�'
}

/**
 * A name as it may be shown: control characters have a sign, since two names can differ in them alone; what turns the direction of
 * text is left out, and what is nothing then still has a place.
 */
export function shownName(name: string): string {
  const text = printable(name.replaceAll(/[\p{Cc}\p{Cs}]/gu, signOf))
  return text === '' ? '(no printable name)' : text
}
