import type { RunOptions } from './options/arguments.ts'
import { programName, spellHint } from './attach/come-back.ts'
import { EXIT_USAGE } from './errors/exit-code.ts'
import { openCredential } from './server/find-server.ts'
import { Program } from './attach/program.ts'
import { Wrong } from './options/words.ts'

type Environment = Readonly<Record<string, string | undefined>>

async function attachTo(options: RunOptions, env: Environment): Promise<number> {
  // Its output would be its own input to the screen, without end.
  if (options.session !== undefined && options.session === env['SANDWIRE_SESSION'])
    throw new Wrong('Cannot attach a session to itself', 'join it from outside the sandbox')
  using program = new Program(options, env, openCredential(options.url, options, env))
  return await program.run()
}

/** Runs until the remote process ends, the link is lost for good, or the user leaves; returns the exit code. */
export async function run(options: RunOptions, env: Environment): Promise<number> {
  try {
    return await attachTo(options, env)
  } catch (error) {
    if (!(error instanceof Wrong)) throw error
    const hint = spellHint(error.hint ?? 'sbx-stdio --help', programName(env))
    process.stderr.write(`sbx-stdio: ${error.message}\nhint: ${hint}\n`)
    return EXIT_USAGE
  }
}
