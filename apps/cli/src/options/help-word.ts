import { isCommandName } from '../commands/names.ts'

/** A command line in which `help`, and `help COMMAND`, are spelled with `--help`. */
export function spellHelp(argv: readonly string[]): readonly string[] {
  const [first, second] = argv
  if (first !== 'help') return argv
  return isCommandName(second) ? [second, '--help'] : ['--help']
}
