import { shape } from '@sandwire/protocol'
import { parameterInCode } from './code-arguments.ts'
import { anything, validateRecord } from './judge-record.ts'
import { findPatternProblem } from './pattern-cost.ts'
import { listPlaceholders } from './placeholders.ts'
import { findValueProblem } from './parameter-value.ts'

/** A hole in a template, and what may fill it. */
export interface TemplateParameter {
  readonly name: string
  readonly description: string
  /** Fits the whole value; absent when `options` are listed. */
  readonly pattern?: string
  readonly options?: readonly string[]
  readonly maxLength: number
  /** Stands for a value that is not given; without one it must be. */
  readonly fallback?: string
  /** A value may begin like an option. */
  readonly allowDash: boolean
}

/** A command that the operator wrote, for people who may not run their own. */
export interface CommandTemplate {
  readonly id: string
  readonly title: string
  readonly description: string
  /** Command and arguments; `{name}` stands for a parameter and never becomes more than one argument. */
  readonly argv: readonly string[]
  readonly params: readonly TemplateParameter[]
  readonly mode: 'pipe' | 'pty'
  /** Folder in the workspace. */
  readonly cwd?: string
  readonly env: Readonly<Record<string, string>>
}

const MAX_ARGS = 64
const MAX_ARG_CHARS = 2048
const MAX_PARAMS = 16
const MAX_OPTIONS = 64
const MAX_VALUE_CHARS = 1024
const DEFAULT_VALUE_CHARS = 256
const MAX_ENV = 16
const MAX_ENV_CHARS = 256
/** No NUL, which no argument can hold. */
const NO_NUL = /^[^\0]*$/
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/
const PARAMETER_NAME = /^[a-z][A-Za-z0-9_]{0,31}$/

const textOf = (maxChars: number) => ({
  shape: shape.text(maxChars, NO_NUL),
  expected: `a text of at most ${maxChars} characters`,
})

const TEMPLATE = {
  id: {
    shape: shape.text(64, /^[a-z0-9][a-z0-9-]*$/),
    expected: 'lower-case letters, digits and hyphens, at most 64',
  },
  title: textOf(128),
  description: { ...textOf(1024), fallback: '' },
  argv: {
    shape: shape.list(shape.text(MAX_ARG_CHARS, NO_NUL), MAX_ARGS),
    expected: `a list of at most ${MAX_ARGS} texts, the first of them the command`,
  },
  params: { shape: anything, expected: 'an object', fallback: {} },
  mode: { shape: shape.oneOf(['pipe', 'pty']), expected: 'pipe or pty', fallback: 'pipe' as const },
  cwd: { ...textOf(1024), fallback: undefined },
  env: {
    shape: shape.dictionary(MAX_ENV, ENV_NAME, shape.text(MAX_ENV_CHARS, NO_NUL)),
    expected: `at most ${MAX_ENV} texts of at most ${MAX_ENV_CHARS} characters under plain names`,
    fallback: {},
  },
} as const

const PARAMETER = {
  description: { ...textOf(256), fallback: '' },
  pattern: { ...textOf(256), fallback: undefined },
  enum: {
    shape: shape.list(shape.text(MAX_VALUE_CHARS), MAX_OPTIONS),
    expected: `a list of at most ${MAX_OPTIONS} texts`,
    fallback: undefined,
  },
  maxLength: {
    shape: shape.whole(1, MAX_VALUE_CHARS),
    expected: `a whole number from 1 to ${MAX_VALUE_CHARS}`,
    fallback: DEFAULT_VALUE_CHARS,
  },
  default: { ...textOf(MAX_VALUE_CHARS), fallback: undefined },
  allowDash: { shape: shape.bool, expected: 'true or false', fallback: false },
} as const

function judgeParameter(
  where: string,
  name: string,
  raw: unknown,
  problems: string[],
): TemplateParameter | undefined {
  const judged = validateRecord(where, raw, PARAMETER, problems)
  if (judged === undefined) return undefined
  const { description, pattern, enum: options, maxLength, default: fallback, allowDash } = judged
  if ((pattern === undefined) === (options === undefined)) {
    problems.push(`${where}: give either "pattern" or "enum"`)
    return undefined
  }
  const fault = pattern === undefined ? undefined : findPatternProblem(pattern, maxLength)
  if (fault !== undefined) {
    problems.push(`${where}: "pattern" cannot be used: ${fault}`)
    return undefined
  }
  const parameter: TemplateParameter = {
    name,
    description,
    maxLength,
    allowDash,
    ...(pattern === undefined ? {} : { pattern }),
    ...(options === undefined ? {} : { options }),
    ...(fallback === undefined ? {} : { fallback }),
  }
  // The author's own values are held to the same rules, or nobody could use them.
  for (const value of [...(options ?? []), ...(fallback === undefined ? [] : [fallback])]) {
    const why = findValueProblem(parameter, value)
    if (why !== undefined) problems.push(`${where}: a value of its own cannot be used: ${why}`)
  }
  return parameter
}

function judgeParameters(where: string, raw: unknown, problems: string[]): readonly TemplateParameter[] {
  const isObject = typeof raw === 'object' && raw !== null && !Array.isArray(raw)
  const entries: [string, unknown][] = isObject ? Object.entries(raw) : []
  if (!isObject || entries.length > MAX_PARAMS)
    problems.push(`${where}: "params" must be an object of at most ${MAX_PARAMS} parameters`)
  return entries.flatMap(([name, each]) => {
    const place = `${where}, parameter "${name}"`
    if (!PARAMETER_NAME.test(name))
      problems.push(`${place}: its name must be letters, digits and underscores after a lower-case letter`)
    return judgeParameter(place, name, each, problems) ?? []
  })
}

function judgeArguments(
  where: string,
  argv: readonly string[],
  names: readonly string[],
  problems: string[],
): void {
  const [command = '', ...rest] = argv
  if (command === '') problems.push(`${where}: "argv" names no command`)
  if (listPlaceholders(command).length > 0)
    problems.push(`${where}: the command itself cannot be a parameter: it would be any command`)
  const used = rest.flatMap(listPlaceholders)
  for (const name of new Set(used))
    if (!names.includes(name)) problems.push(`${where}: "argv" holds {${name}}, which "params" does not say`)
  for (const name of names)
    if (!used.includes(name)) problems.push(`${where}: parameter "${name}" is not in "argv"`)
  const inCode = parameterInCode(argv)
  if (inCode !== undefined)
    problems.push(
      `${where}: {${inCode.parameter}} stands where "${inCode.program}" takes something to run, so its value could run anything; write out what runs, pass the value as a further argument and read it there, as "$1"`,
    )
}

/** Decodes one template, and adds every reason why it cannot be used. */
export function validateTemplate(
  place: string,
  raw: unknown,
  problems: string[],
): CommandTemplate | undefined {
  const judged = validateRecord(place, raw, TEMPLATE, problems)
  if (judged === undefined) return undefined
  const { params: rawParams, cwd, ...rest } = judged
  const where = `${place} "${rest.id}"`
  const params = judgeParameters(where, rawParams, problems)
  const declared = typeof rawParams === 'object' && rawParams !== null ? Object.keys(rawParams) : []
  judgeArguments(where, rest.argv, declared, problems)
  return { ...rest, params, ...(cwd === undefined ? {} : { cwd }) }
}
