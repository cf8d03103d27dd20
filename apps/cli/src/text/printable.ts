import { INVISIBLE } from '@sandwire/protocol'

/** Longest text to print. */
const MAX_CHARS = 500
const INVISIBLE_RUN = new RegExp(`(?:${INVISIBLE.source})+`, INVISIBLE.flags)

/** Makes untrusted text safe for a terminal: one line of printable characters. */
export function printable(text: string): string {
  return text.replaceAll(INVISIBLE_RUN, ' ').trim().slice(0, MAX_CHARS)
}

/** Escapes control characters in JSON, so that it is safe for a terminal and has the same value. */
export function escapeJson(json: string): string {
  return json.replace(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
