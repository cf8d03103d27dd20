import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { stdoutColumns } from './attach/terminal-size.ts'
import { isCommandName } from './commands/names.ts'
import { EXIT_USAGE, isSignalExit } from './errors/exit-code.ts'
import { exitOnStdoutError } from './errors/stdout-error.ts'
import { parseArguments } from './options/attach-options.ts'
import { expandHelpCommand, HELP, wrapHelp } from './options/help.ts'
import { findEncodingProblem, hideArgument } from './options/process-arguments.ts'
import { bypassProxyForLoopback } from './server/address.ts'
import { formatHint, programName } from './text/command-line.ts'

bypassProxyForLoopback(process.env)

function print(text: string): void {
  exitOnStdoutError()
  process.stdout.write(text)
}

function failUsage(message: string, hint: string): void {
  process.stderr.write(`sbx-stdio: ${message}\nhint: ${formatHint(hint, programName(process.env))}\n`)
  process.exitCode = EXIT_USAGE
}

const argv = expandHelpCommand(process.argv.slice(2))
const [first, ...rest] = argv
const encodingProblem = findEncodingProblem(process.argv, isCommandName(first))
if (encodingProblem !== undefined) failUsage(encodingProblem.message, encodingProblem.hint)
else if (isCommandName(first)) {
  const { runCommand } = await import('./commands/run-command.ts')
  const { openCommandIo } = await import('./commands/command-io.ts')
  const code = await runCommand(first, rest, {
    env: process.env,
    io: openCommandIo(),
    nowMs: Date.now(),
  })
  process.exitCode = code
  // After an interrupt, exit at once: the reader of stdout may have stalled.
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
    case 'invalid':
      failUsage(parsed.message, parsed.hint)
      break
    case 'run': {
      if (parsed.token !== undefined) hideArgument(parsed.token)
      // Loaded on demand, because help and version do not need it.
      const { runAttach } = await import('./attach/run.ts')
      process.exit(await runAttach(parsed, process.env))
    }
  }
}
