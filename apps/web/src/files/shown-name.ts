import { printable } from '@sandwire/react'

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** What stands for a character that has no sign, in letters that every font has; bytes that are no text are such ones as well. */
function escape(character: string): string {
  const code = character.charCodeAt(0)
  if (code > 0xff) return '�'
  return ESCAPES[character] ?? `\\x${code.toString(16).padStart(2, '0')}`
}

/**
 * A name as it may be shown: control characters are seen, since two names can differ in them alone; what turns the direction of
 * text is left out, and what is nothing then still has a place.
 */
export function shownName(name: string): string {
  const text = printable(name.replaceAll(/[\p{Cc}\p{Cs}]/gu, escape))
  return text === '' ? '(no printable name)' : text
}
