import type { TemplateParameter } from './judge-template.ts'
import { compilePattern } from './pattern-cost.ts'

/** Hyphens of all alphabets and the minus sign: some programs take any of them for the start of an option. */
const DASH = /^[\p{Pd}\u2212]/u
/** Control and format characters, lone surrogates, and what no script uses. */
const UNPRINTABLE = /\p{C}|\p{Zl}|\p{Zp}/u

/** Why a value cannot fill a parameter, without a character of it; undefined when it can. */
export function findValueProblem(parameter: TemplateParameter, value: string): string | undefined {
  const { maxLength, allowDash, options, pattern } = parameter
  // First of all, since it bounds what a pattern costs.
  if (value.length > maxLength) return `longer than ${maxLength} characters`
  if (!value.isWellFormed() || UNPRINTABLE.test(value)) return 'it holds a character that is not printable'
  if (!allowDash && DASH.test(value)) return 'it begins with a dash'
  if (options !== undefined) return options.includes(value) ? undefined : 'not one of those it may be'
  return pattern !== undefined && compilePattern(pattern).test(value)
    ? undefined
    : 'it does not fit the pattern'
}
