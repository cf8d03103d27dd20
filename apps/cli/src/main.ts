import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { parseArguments } from './options/arguments.ts'
import { programName, spellHint } from './attach/come-back.ts'
import { isCommandName } from './commands/names.ts'
import { exitCodeOfSignal } from './errors/exit-code.ts'
import { fitHelp } from './options/fit-help.ts'
import { HELP } from './options/help.ts'
import { hideArgument } from './options/hidden-argument.ts'
import { keepLoopbackDirect } from './server/loopback-direct.ts'
import { terminalColumns } from './attach/window-size.ts'

keepLoopbackDirect(process.env)
/** For what this program says about itself. */
function print(text: string): void {
  // Whoever reads has seen enough.
  process.stdout.on('error', () => process.exit(exitCodeOfSignal('SIGPIPE')))
  process.stdout.write(text)
}

const [first, ...rest] = process.argv.slice(2)
if (isCommandName(first)) {
  const { runCommand } = await import('./commands/run-command.ts')
  const { openCommandIo } = await import('./commands/command-io.ts')
  process.exitCode = await runCommand(first, rest, {
    env: process.env,
    io: openCommandIo(),
    nowMs: Date.now(),
  })
} else {
  const parsed = parseArguments(process.argv.slice(2))
  switch (parsed.kind) {
    case 'help':
      print(fitHelp(HELP, terminalColumns()))
      break
    case 'version':
      print(`sbx-stdio ${SOFTWARE_VERSION}\n`)
      break
    case 'wrong':
      process.stderr.write(
        `sbx-stdio: ${parsed.message}\nhint: ${spellHint(parsed.hint, programName(process.env))}\n`,
      )
      process.exitCode = 2
      break
    case 'run': {
      if (parsed.token !== undefined) hideArgument(parsed.token)
      // Loaded here, because help and version need none of it.
      const { run } = await import('./run.ts')
      process.exit(await run(parsed, process.env))
    }
  }
}
