import type { RunOptions } from './arguments.ts'
import { EXIT_USAGE } from './exit-code.ts'
import { Program } from './program.ts'
import { readToken } from './token.ts'

/** Runs until the remote process ends, the link is lost for good, or the user leaves; returns the exit code. */
export async function run(
  options: RunOptions,
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (options.session !== undefined && options.session === env['SANDWIRE_SESSION']) {
    // Its output would be its own input to the screen, without end.
    process.stderr.write(
      'sbx-stdio: Cannot attach a session to itself\nhint: join it from outside the sandbox\n',
    )
    return EXIT_USAGE
  }
  const sources = { token: options.token, tokenFile: options.tokenFile, environment: env['SBX_TOKEN'] }
  const first = readToken(sources)
  if (!first.isOk) {
    process.stderr.write(`sbx-stdio: ${first.message}\nhint: ${first.hint}\n`)
    return EXIT_USAGE
  }
  const bearer = (): string | undefined => {
    // A token file may be renewed while this runs; one that is gone leaves the token that was there.
    const again = readToken(sources)
    return again.isOk ? again.token : first.token
  }
  using program = new Program(options, env, bearer)
  return await program.run()
}
