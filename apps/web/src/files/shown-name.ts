import { printable } from '@sandwire/react'

/** The pictures of control characters in Unicode: those below a space in their order, and that of DEL. */
const [PICTURES, PICTURE_OF_DEL] = [0x2400, 0x2421]

function pictureOf(character: string): string {
  const code = character.charCodeAt(0)
  return String.fromCharCode(code < 0x20 ? PICTURES + code : PICTURE_OF_DEL)
}

/**
 * A name as it may be shown: control characters as pictures, since two names can differ in them alone; what else cannot be printed
 * is left out, and what is nothing then still has a place.
 */
export function shownName(name: string): string {
  const text = printable(name.replaceAll(/[\0-\u{1f}\u{7f}]/gu, pictureOf))
  return text === '' ? '(no printable name)' : text
}
