import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { parseArguments } from './arguments.ts'
import { HELP } from './help.ts'
import { hideArgument } from './hidden-argument.ts'

const parsed = parseArguments(process.argv.slice(2))
switch (parsed.kind) {
  case 'help':
    process.stdout.write(HELP)
    break
  case 'version':
    process.stdout.write(`sbx-stdio ${SOFTWARE_VERSION}\n`)
    break
  case 'wrong':
    process.stderr.write(`sbx-stdio: ${parsed.message}\nhint: ${parsed.hint}\n`)
    process.exitCode = 2
    break
  case 'run': {
    if (parsed.token !== undefined) hideArgument(parsed.token)
    // Loaded here, because help and version need none of it.
    const { run } = await import('./run.ts')
    process.exit(await run(parsed, process.env))
  }
}
