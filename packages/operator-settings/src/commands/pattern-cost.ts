/** Most ways, as a power of two, in which a pattern may try to match a value: some hundred milliseconds. */
const MAX_COST_BITS = 27

/** Pieces of a pattern that matter here: escapes, classes and quantifiers are taken whole. */
const PIECE = /\\(?:k<|.)|\[(?:\\.|[^\]\\])*\]|\(\?.|\{(\d+)(?:(,)(\d*))?\}|[()*+?|]/gsu

/** Why a pattern cannot be used, or undefined. */
export type PatternFault =
  | 'not a regular expression'
  | 'it holds a look-around, a back-reference or a named group'
  | 'a group in it is repeated'
  | 'trying it could take too long'

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') instanceof RegExp
  } catch {
    // A syntax error: told by the false.
    return false
  }
}

/** How many ways a bounded repetition can end. */
function spanOf([, least = '0', comma, most = '']: RegExpMatchArray, maxLength: number): number {
  if (comma === undefined) return 1
  return most === '' ? maxLength : Math.min(maxLength, Number(most) - Number(least) + 1)
}

/**
 * What is wrong with a pattern for values of a length. The engine tries alternatives one after the other, so the cost
 * is at most the product of all choices: a value's length for each repetition, two for each option. Groups are not
 * repeated, because then choices multiply with the length.
 */
export function findPatternProblem(pattern: string, maxLength: number): PatternFault | undefined {
  // Compiled alone first: what is balanced by itself cannot close the group it is put into.
  if (!compiles(pattern)) return 'not a regular expression'
  let bits = 0
  let isAfterGroup = false
  for (const piece of pattern.matchAll(PIECE)) {
    const [text] = piece
    if (/^\\[k1-9]/.test(text) || (text.startsWith('(?') && text !== '(?:'))
      return 'it holds a look-around, a back-reference or a named group'
    const isRight = isAfterGroup && pattern[piece.index - 1] === ')'
    const isRepetition = text === '*' || text === '+' || (text.startsWith('{') && text.endsWith('}'))
    if (isRepetition && isRight) return 'a group in it is repeated'
    if (isRepetition) bits += Math.log2(text.startsWith('{') ? spanOf(piece, maxLength) : maxLength)
    if (text === '?' || text === '|') bits += 1
    isAfterGroup = text === ')'
  }
  return bits > MAX_COST_BITS ? 'trying it could take too long' : undefined
}

/** The pattern for a whole value. */
export function compilePattern(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, 'u')
}
