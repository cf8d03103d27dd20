/** Most alternatives, as a power of two, that matching a value may try: a few hundred milliseconds. */
const MAX_COST_BITS = 27

/** Tokens of a pattern that affect its cost. Escapes, classes and quantifiers are single tokens. */
const PIECE = /\\(?:k<|.)|\[(?:\\.|[^\]\\])*\]|\(\?.|\{(\d+)(?:(,)(\d*))?\}|[()*+?|]/gsu

/** Why a pattern cannot be used, or undefined. */
export type PatternProblem =
  | 'not a regular expression'
  | 'it contains a look-around, a back-reference or a named group'
  | 'it repeats a group'
  | 'matching could take too long'

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') instanceof RegExp
  } catch {
    // A syntax error.
    return false
  }
}

/** In how many ways a bounded repetition can match. */
function spanOf([, least = '0', comma, most = '']: RegExpMatchArray, maxLength: number): number {
  if (comma === undefined) return 1
  return most === '' ? maxLength : Math.min(maxLength, Number(most) - Number(least) + 1)
}

/**
 * Why a pattern cannot be used for values up to a length. A backtracking engine tries at most the product of all choices:
 * the value's length for each repetition, two for each option. Repeated groups are refused, because their choices multiply
 * with the length.
 */
export function findPatternProblem(pattern: string, maxLength: number): PatternProblem | undefined {
  // Compiled alone first: a pattern with balanced groups cannot close the group that wraps it.
  if (!compiles(pattern)) return 'not a regular expression'
  let bits = 0
  let isAfterGroup = false
  for (const piece of pattern.matchAll(PIECE)) {
    const [text] = piece
    if (/^\\[k1-9]/.test(text) || (text.startsWith('(?') && text !== '(?:'))
      return 'it contains a look-around, a back-reference or a named group'
    const isRight = isAfterGroup && pattern[piece.index - 1] === ')'
    const isRepetition = text === '*' || text === '+' || (text.startsWith('{') && text.endsWith('}'))
    if (isRepetition && isRight) return 'it repeats a group'
    if (isRepetition) bits += Math.log2(text.startsWith('{') ? spanOf(piece, maxLength) : maxLength)
    if (text === '?' || text === '|') bits += 1
    isAfterGroup = text === ')'
  }
  return bits > MAX_COST_BITS ? 'matching could take too long' : undefined
}

/** Matches the whole value. */
export function compilePattern(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, 'u')
}
