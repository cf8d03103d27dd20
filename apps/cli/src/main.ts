import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { parseArguments } from './options/arguments.ts'
import { programName, spellHint } from './attach/come-back.ts'
import { isCommandName } from './commands/names.ts'
import { endOnWriteFault } from './errors/end-on-write-fault.ts'
import { EXIT_USAGE, isOfSignal } from './errors/exit-code.ts'
import { fitHelp } from './options/fit-help.ts'
import { HELP } from './options/help.ts'
import { spellHelp } from './options/help-word.ts'
import { hideArgument } from './options/hidden-argument.ts'
import { findDamage } from './options/raw-arguments.ts'
import { keepLoopbackDirect } from './server/loopback-direct.ts'
import { terminalColumns } from './attach/window-size.ts'

keepLoopbackDirect(process.env)
/** For what this program says about itself. */
function print(text: string): void {
  endOnWriteFault()
  process.stdout.write(text)
}

/** Says what is wrong with the command line. */
function refuse(message: string, hint: string): void {
  process.stderr.write(`sbx-stdio: ${message}\nhint: ${spellHint(hint, programName(process.env))}\n`)
  process.exitCode = EXIT_USAGE
}

const argv = spellHelp(process.argv.slice(2))
const [first, ...rest] = argv
const damaged = findDamage(process.argv, isCommandName(first))
if (damaged !== undefined) refuse(damaged.message, damaged.hint)
else if (isCommandName(first)) {
  const { runCommand } = await import('./commands/run-command.ts')
  const { openCommandIo } = await import('./commands/command-io.ts')
  const code = await runCommand(first, rest, {
    env: process.env,
    io: openCommandIo(),
    nowMs: Date.now(),
  })
  process.exitCode = code
  // Whoever interrupts does not wait for a reader that has stopped.
  if (isOfSignal(code)) process.exit()
} else {
  const parsed = parseArguments(argv)
  switch (parsed.kind) {
    case 'help':
      print(fitHelp(HELP, terminalColumns()))
      break
    case 'version':
      print(`sbx-stdio ${SOFTWARE_VERSION}\n`)
      break
    case 'wrong':
      refuse(parsed.message, parsed.hint)
      break
    case 'run': {
      if (parsed.token !== undefined) hideArgument(parsed.token)
      // Loaded here, because help and version need none of it.
      const { run } = await import('./run.ts')
      process.exit(await run(parsed, process.env))
    }
  }
}
