/** Characters of a foreign text that are shown. */
const MAX_CHARS = 500

/** One line of printable characters, for text that came from somewhere else and goes to a terminal. */
export function printable(text: string): string {
  return text
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, MAX_CHARS)
}

/** JSON that a terminal shows and does not obey: the same value, with every odd character in it spelled out. */
export function escapeJson(json: string): string {
  return json.replace(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
