import { nameOfCommand, SHELLS } from './command-name.ts'
import { placeholdersOf } from './placeholders.ts'

/** Programs that take code in an argument, and the options it follows. */
const INTERPRETERS: readonly { readonly names: readonly string[]; readonly flags: RegExp }[] = [
  // Short options may be put together, as in -lc; fish also takes -C.
  { names: SHELLS, flags: /^(?:-[A-Za-z]*c[A-Za-z]*|--(?:init-)?command|-Command)$/i },
  { names: ['su', 'runuser', 'script', 'flock'], flags: /^(?:-[A-Za-z]*c|--(?:session-)?command)$/ },
  { names: ['python', 'pypy'], flags: /^-[A-Za-z]*c$/ },
  { names: ['perl', 'ruby', 'lua', 'Rscript'], flags: /^-[A-Za-z]*[eE]$/ },
  { names: ['node', 'bun', 'deno'], flags: /^(?:-[a-z]*[ep]|--eval|--print)$/ },
  { names: ['php'], flags: /^-[rBRE]$/ },
  { names: ['env'], flags: /^(?:-[A-Za-z]*S|--split-string)$/ },
]
/** Options of shells whose next argument is not the script. */
const TAKES_ARGUMENT = /^(?:[-+][A-Za-z]*[oO]|--(?:rcfile|init-file))$/

function interpreterOf(argument: string) {
  const name = nameOfCommand(argument).replace(/[-.0-9]+$/, '')
  return INTERPRETERS.find(({ names }) => names.includes(name))
}

/** Index of the argument that is read as code because of the flag at `flag`; options may stand between the two. */
function codeAfter(argv: readonly string[], flag: number): number {
  let at = flag + 1
  for (;;) {
    const argument = argv[at]
    if (argument === undefined || !/^[-+]./.test(argument) || argument === '--') break
    // A value cannot be told from an option here, so the author must not put one.
    if (placeholdersOf(argument).length > 0) break
    at += TAKES_ARGUMENT.test(argument) ? 2 : 1
  }
  return argv[at] === '--' ? at + 1 : at
}

/**
 * The first parameter of a template that a shell or interpreter would read as code, or undefined. This finds what an
 * author overlooks; who wants to run values as code can still write a program that does.
 */
export function parameterInCode(argv: readonly string[]): string | undefined {
  for (const [start, program] of argv.entries()) {
    const interpreter = interpreterOf(program)
    if (interpreter === undefined) continue
    for (let at = start + 1; at < argv.length; at += 1) {
      const argument = argv[at] ?? ''
      const [inOption] = /^[-+]/.test(argument) ? placeholdersOf(argument) : []
      // An option with code in it, as in --command={x}, or options made of values.
      const isGlued = inOption !== undefined && interpreter.flags.test(argument.split('=')[0] ?? '')
      if (isGlued || (inOption !== undefined && /^[-+][A-Za-z]*\{/.test(argument))) return inOption
      if (!interpreter.flags.test(argument)) continue
      const [inCode] = placeholdersOf(argv[codeAfter(argv, at)] ?? '')
      if (inCode !== undefined) return inCode
    }
  }
  return undefined
}
