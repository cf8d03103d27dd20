import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { parseArguments } from './options/attach-options.ts'
import { programName, formatHint } from './text/command-line.ts'
import { isCommandName } from './commands/names.ts'
import { endOnWriteFault, EXIT_USAGE, isSignalExit } from './errors/exit-code.ts'
import { wrapHelp, HELP, expandHelpCommand } from './options/help.ts'
import { findEncodingProblem, hideArgument } from './options/process-arguments.ts'
import { bypassProxyForLoopback } from './server/address.ts'
import { stdoutColumns } from './attach/window-size.ts'

bypassProxyForLoopback(process.env)
/** For what this program says about itself. */
function print(text: string): void {
  endOnWriteFault()
  process.stdout.write(text)
}

/** Says what is wrong with the command line. */
function refuse(message: string, hint: string): void {
  process.stderr.write(`sbx-stdio: ${message}\nhint: ${formatHint(hint, programName(process.env))}\n`)
  process.exitCode = EXIT_USAGE
}

const argv = expandHelpCommand(process.argv.slice(2))
const [first, ...rest] = argv
const repaintNeeded = findEncodingProblem(process.argv, isCommandName(first))
if (repaintNeeded !== undefined) refuse(repaintNeeded.message, repaintNeeded.hint)
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
  if (isSignalExit(code)) process.exit()
} else {
  const parsed = parseArguments(argv)
  switch (parsed.kind) {
    case 'help':
      print(wrapHelp(HELP, stdoutColumns()))
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
      const { run } = await import('./attach/run.ts')
      process.exit(await run(parsed, process.env))
    }
  }
}
