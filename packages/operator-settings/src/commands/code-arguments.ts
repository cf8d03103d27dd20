import { CODE_RULES, type CodeRule } from './code-rules.ts'
import { commandName } from './command-name.ts'
import { listPlaceholders } from './placeholders.ts'

/** Options of shells whose next argument is not the script. */
const TAKES_ARGUMENT = /^(?:[-+][A-Za-z]*[oO]|--(?:rcfile|init-file))$/

/** A parameter whose value would be run, and the program that would run it. */
export interface InCode {
  readonly parameter: string
  readonly program: string
}

function rulesOf(argument: string): readonly CodeRule[] {
  const name = commandName(argument)
  const plain = name.replace(/[-.0-9]+$/, '')
  return CODE_RULES.filter(({ names }) => names.includes(name) || names.includes(plain))
}

function isOption(argument: string): boolean {
  return /^[-+]./.test(argument)
}

/** Index of the argument that is read as code because of the flag at `flag`; options may stand between the two. */
function codeAfter(argv: readonly string[], flag: number): number {
  let at = flag + 1
  for (;;) {
    const argument = argv[at]
    if (argument === undefined || !isOption(argument) || argument === '--') break
    // A value cannot be told from an option here, so the author must not put one.
    if (listPlaceholders(argument).length > 0) break
    at += TAKES_ARGUMENT.test(argument) ? 2 : 1
  }
  return argv[at] === '--' ? at + 1 : at
}

/** Arguments that are no options and no values of options, in order. */
function operandsOf(args: readonly string[], { takes }: CodeRule): readonly string[] {
  const operands: string[] = []
  let isValue = false
  for (const [at, argument] of args.entries()) {
    if (argument === '--') return [...operands, ...args.slice(at + 1)]
    if (!isValue && !isOption(argument)) operands.push(argument)
    isValue = !isValue && takes?.test(argument) === true
  }
  return operands
}

/** What stands in options that code follows or is glued to. */
function inOptions(args: readonly string[], { flags, glued }: CodeRule): string | undefined {
  for (const [at, argument] of args.entries()) {
    const [inside] = listPlaceholders(argument)
    const before = argument.split(/[={]/, 1)[0] ?? ''
    // Options made of values are whatever the caller likes.
    const isMade = /^(?:-+|\+)$/.test(before)
    const isGlued = glued?.test(argument) === true || (isOption(argument) && flags?.test(before) === true)
    if (inside !== undefined && (isMade || isGlued)) return inside
    if (inside !== undefined || flags?.test(argument) !== true) continue
    const [following] = listPlaceholders(args[codeAfter(args, at)] ?? '')
    if (following !== undefined) return following
  }
  return undefined
}

/** What stands in operands that are code, a command or a setting that decides what runs. */
function inOperands(args: readonly string[], rule: CodeRule): string | undefined {
  const { operands: code, instead, assigns } = rule
  const all = operandsOf(args, rule)
  const settings = all.filter((operand) => assigns?.test(operand))
  const counted = all.filter((operand) => !settings.includes(operand))
  const isElsewhere = args.some((argument) => instead?.test(argument))
  const run = code === undefined || isElsewhere ? [] : counted.slice(code.from, code.to + 1)
  return [...run, ...settings.slice(0, settingsThatCount(all, assigns, code))].flatMap(listPlaceholders)[0]
}

/** Where a command follows, what is behind it is the command's own. */
function settingsThatCount(
  all: readonly string[],
  assigns: RegExp | undefined,
  code: CodeRule['operands'],
): number {
  if (code === undefined) return all.length
  const command = all.findIndex((operand) => assigns?.test(operand) !== true)
  return command === -1 ? all.length : command
}

/**
 * The first parameter of a template that a program would run, or undefined. This finds what an author overlooks; who wants
 * to run values as code can still write a program that does. Options are looked for behind every argument that is spelled
 * like a known program; operands only where it is one, since a name may stand for anything else.
 */
export function parameterInCode(argv: readonly string[]): InCode | undefined {
  const isWrapped = rulesOf(argv[0] ?? '').some(({ wraps }) => wraps === true)
  for (const [start, program] of argv.entries()) {
    // Python names a module of its own like that.
    const isProgram = start === 0 || isWrapped || argv[start - 1] === '-m'
    const args = argv.slice(start + 1)
    for (const rule of rulesOf(program)) {
      if (!isProgram && rule.isWord === true) continue
      const all = rule.isAll === true ? args.flatMap(listPlaceholders)[0] : undefined
      const parameter = inOptions(args, rule) ?? (isProgram ? (all ?? inOperands(args, rule)) : undefined)
      if (parameter !== undefined) return { parameter, program: commandName(program) }
    }
  }
  return undefined
}
