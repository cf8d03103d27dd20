import { schema } from '@sandwire/protocol'
import { anything, validateRecord } from '../validate-record.ts'
import { compilePattern, findPatternProblem } from './pattern-cost.ts'

/** A parameter of a template and the values it accepts. */
export interface TemplateParameter {
  readonly name: string
  readonly description: string
  /** Must match the whole value; absent when `options` are listed. */
  readonly pattern?: string
  readonly options?: readonly string[]
  readonly maxLength: number
  /** Used when no value is given; without it a value is required. */
  readonly fallback?: string
  /** Values may begin with a dash. */
  readonly allowDash: boolean
}

/** A command defined by the operator, for accounts that may not run commands of their own. */
export interface CommandTemplate {
  readonly id: string
  readonly title: string
  readonly description: string
  /** Program and arguments. `{name}` is replaced by a parameter's value and never becomes more than one argument. */
  readonly argv: readonly string[]
  readonly params: readonly TemplateParameter[]
  readonly mode: 'pipe' | 'pty'
  /** Folder in the workspace. */
  readonly cwd?: string
  readonly env: Readonly<Record<string, string>>
}

/** Programs that run when no command is named, and that read an argument as a script. */
export const SHELLS: readonly string[] = [
  'sh',
  'bash',
  'dash',
  'zsh',
  'ksh',
  'mksh',
  'ash',
  'rbash',
  'fish',
  'csh',
  'tcsh',
  'busybox',
  'pwsh',
]

/** The last part of a command's path. */
export function commandName(command: string): string {
  return command.replace(/\/+$/, '').split('/').at(-1) ?? ''
}

/** `{name}` in an argument of a template. */
const PLACEHOLDER = /\{([a-z][A-Za-z0-9_]{0,31})\}/g

function listPlaceholders(argument: string): readonly string[] {
  return [...argument.matchAll(PLACEHOLDER)].map(([, name = '']) => name)
}

/** Replaces parameters by their values in one pass, so that a value is never read as a placeholder. */
export function replacePlaceholders(argument: string, valueOf: (name: string) => string): string {
  return argument.replaceAll(PLACEHOLDER, (_, name: string) => valueOf(name))
}

/** Hyphens of all scripts and the minus sign: some programs accept any of them as the start of an option. */
const DASH = /^[\p{Pd}\u2212]/u
/** Control and format characters, lone surrogates, unassigned characters, line separators. */
const UNPRINTABLE = /\p{C}|\p{Zl}|\p{Zp}/u

/** Why a parameter does not accept a value, without repeating the value; undefined when it does. */
export function findValueProblem(parameter: TemplateParameter, value: string): string | undefined {
  const { maxLength, allowDash, options, pattern } = parameter
  // Checked first, because it limits the cost of matching the pattern.
  if (value.length > maxLength) return `it is longer than ${maxLength} characters`
  if (!value.isWellFormed() || UNPRINTABLE.test(value)) return 'it contains a character that is not printable'
  if (!allowDash && DASH.test(value)) return 'it begins with a dash'
  if (options !== undefined)
    return options.includes(value) ? undefined : 'it is not one of the allowed values'
  return pattern !== undefined && compilePattern(pattern).test(value)
    ? undefined
    : 'it does not match the pattern'
}

/** Options by which interpreters take code, also combined as in `-lc` or with the code attached as in `--eval=`. */
const CODE_OPTION =
  /^(?:-[A-Za-z]{0,2}[ceE]|-(?:exec|execdir|ok|okdir|eval|ex)|--(?:init-)?(?:command|eval|exec|execute|expression)=?)$/
/** Fixed text around a parameter. Anything else is likely to be code. */
const PLAIN_TEXT = /^[A-Za-z0-9_.,:=@%+/-]*$/
const SHELL_OPTIONS = /^-[A-Za-z]*c$/
const OPTION = /^[-+]/

const isFixed = (argument: string): boolean => listPlaceholders(argument).length === 0
const isShell = (argument: string): boolean => SHELLS.includes(commandName(argument))

/** True when a shell's arguments begin with a fixed script: its path, or `-c`, the script and its `$0`. */
function hasFixedScript(args: readonly string[]): boolean {
  const [first = '', script = ''] = args
  if (!SHELL_OPTIONS.test(first)) return !OPTION.test(first) && isFixed(first)
  return !OPTION.test(script) && args.length > 3 && args.slice(0, 3).every(isFixed)
}

/**
 * Why a parameter may not stand where it does; undefined when it may. The rule: a parameter is never the program; the text
 * around it has no spaces, quotes or other special characters; it does not directly follow an option such as `-c`, `-e` or
 * `--eval`; and after a shell's name come the script's path, or `-c`, the script and its `$0`, before any parameter.
 */
export function findPlacementProblem(argv: readonly string[]): string | undefined {
  for (const [index, argument] of argv.entries()) {
    const [name] = listPlaceholders(argument)
    if (name === undefined) continue
    if (index === 0) return `the program cannot be a parameter, since {${name}} would run any command`
    if (!PLAIN_TEXT.test(replacePlaceholders(argument, () => '')))
      return `{${name}} is part of an argument with special characters, which could be code; pass the value as an argument of its own`
    const option = [argument.slice(0, argument.indexOf('{')), argv[index - 1] ?? ''].find((text) =>
      CODE_OPTION.test(text),
    )
    if (option !== undefined)
      return `{${name}} follows the option "${option}", which could run its value; write "--" before it, or pass it as a further argument`
  }
  const shell = argv.findIndex((argument, index) => isShell(argument) && !isShell(argv[index + 1] ?? ''))
  const args = argv.slice(shell + 1)
  if (shell === -1 || args.every(isFixed) || hasFixedScript(args)) return undefined
  return `"${commandName(argv[shell] ?? '')}" could run a parameter; write the script, or -c, the script and its $0, before the first parameter`
}

const MAX_ARGS = 64
const MAX_ARG_CHARS = 2048
const MAX_PARAMS = 16
const MAX_OPTIONS = 64
const MAX_VALUE_CHARS = 1024
const DEFAULT_VALUE_CHARS = 256
const MAX_ENV = 16
const MAX_ENV_CHARS = 256
/** Arguments cannot contain NUL. */
const NO_NUL = /^[^\0]*$/
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/
const PARAMETER_NAME = /^[a-z][A-Za-z0-9_]{0,31}$/

const textOf = (maxChars: number) => ({
  schema: schema.text(maxChars, NO_NUL),
  expected: `a text of at most ${maxChars} characters`,
})

const TEMPLATE = {
  id: {
    schema: schema.text(64, /^[a-z0-9][a-z0-9-]*$/),
    expected: 'lower-case letters, digits and hyphens, at most 64',
  },
  title: textOf(128),
  description: { ...textOf(1024), fallback: '' },
  argv: {
    schema: schema.list(schema.text(MAX_ARG_CHARS, NO_NUL), MAX_ARGS),
    expected: `a list of at most ${MAX_ARGS} texts, the first of them the command`,
  },
  params: { schema: anything, expected: 'an object', fallback: {} },
  mode: { schema: schema.oneOf(['pipe', 'pty']), expected: 'pipe or pty', fallback: 'pipe' as const },
  cwd: { ...textOf(1024), fallback: undefined },
  env: {
    schema: schema.dictionary(MAX_ENV, ENV_NAME, schema.text(MAX_ENV_CHARS, NO_NUL)),
    expected: `at most ${MAX_ENV} texts of at most ${MAX_ENV_CHARS} characters under plain names`,
    fallback: {},
  },
} as const

const PARAMETER = {
  description: { ...textOf(256), fallback: '' },
  pattern: { ...textOf(256), fallback: undefined },
  enum: {
    schema: schema.list(schema.text(MAX_VALUE_CHARS), MAX_OPTIONS),
    expected: `a list of at most ${MAX_OPTIONS} texts`,
    fallback: undefined,
  },
  maxLength: {
    schema: schema.integer(1, MAX_VALUE_CHARS),
    expected: `a whole number from 1 to ${MAX_VALUE_CHARS}`,
    fallback: DEFAULT_VALUE_CHARS,
  },
  default: { ...textOf(MAX_VALUE_CHARS), fallback: undefined },
  allowDash: { schema: schema.bool, expected: 'true or false', fallback: false },
} as const

function validateParameter(
  where: string,
  name: string,
  raw: unknown,
  problems: string[],
): TemplateParameter | undefined {
  const decoded = validateRecord(where, raw, PARAMETER, problems)
  if (decoded === undefined) return undefined
  const { description, pattern, enum: options, maxLength, default: fallback, allowDash } = decoded
  if ((pattern === undefined) === (options === undefined)) {
    problems.push(`${where}: give either "pattern" or "enum"`)
    return undefined
  }
  const problem = pattern === undefined ? undefined : findPatternProblem(pattern, maxLength)
  if (problem !== undefined) {
    problems.push(`${where}: "pattern" cannot be used: ${problem}`)
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
  for (const value of [...(options ?? []), ...(fallback === undefined ? [] : [fallback])]) {
    const valueProblem = findValueProblem(parameter, value)
    if (valueProblem !== undefined)
      problems.push(`${where}: one of its own values cannot be used: ${valueProblem}`)
  }
  return parameter
}

function validateParameters(where: string, raw: unknown, problems: string[]): readonly TemplateParameter[] {
  const isObject = typeof raw === 'object' && raw !== null && !Array.isArray(raw)
  const entries: [string, unknown][] = isObject ? Object.entries(raw) : []
  if (!isObject || entries.length > MAX_PARAMS)
    problems.push(`${where}: "params" must be an object of at most ${MAX_PARAMS} parameters`)
  return entries.flatMap(([name, each]) => {
    const parameterWhere = `${where}, parameter "${name}"`
    if (!PARAMETER_NAME.test(name))
      problems.push(
        `${parameterWhere}: its name must be letters, digits and underscores after a lower-case letter`,
      )
    return validateParameter(parameterWhere, name, each, problems) ?? []
  })
}

function validateArguments(
  where: string,
  argv: readonly string[],
  names: readonly string[],
  problems: string[],
): void {
  const [command = '', ...rest] = argv
  if (command === '') problems.push(`${where}: "argv" names no command`)
  const used = rest.flatMap(listPlaceholders)
  for (const name of new Set(used))
    if (!names.includes(name))
      problems.push(`${where}: "argv" contains {${name}}, which "params" does not define`)
  for (const name of names)
    if (!used.includes(name)) problems.push(`${where}: parameter "${name}" is not in "argv"`)
  const problem = findPlacementProblem(argv)
  if (problem !== undefined) problems.push(`${where}: ${problem}`)
}

/** Decodes one template and adds every problem to `problems`. */
export function validateTemplate(
  path: string,
  raw: unknown,
  problems: string[],
): CommandTemplate | undefined {
  const decoded = validateRecord(path, raw, TEMPLATE, problems)
  if (decoded === undefined) return undefined
  const { params: rawParams, cwd, ...rest } = decoded
  const where = `${path} "${rest.id}"`
  const params = validateParameters(where, rawParams, problems)
  const declared = typeof rawParams === 'object' && rawParams !== null ? Object.keys(rawParams) : []
  validateArguments(where, rest.argv, declared, problems)
  return { ...rest, params, ...(cwd === undefined ? {} : { cwd }) }
}
