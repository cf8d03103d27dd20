import { shellQuote } from '@sandwire/shell-quote'
import { programName, formatHint } from '../text/command-line.ts'
import { Program } from './program.ts'
import { findSessions, isSessionPrefix, isFullSessionId, singleSession } from '../commands/session-id.ts'
import { EXIT_USAGE } from '../errors/exit-code.ts'
import type { RunOptions } from '../options/attach-options.ts'
import { UsageError } from '../errors/errors.ts'
import { createApi } from '../server/api.ts'
import { type ServerCredential, openCredential } from '../server/find-server.ts'
import { originOf } from '../server/known-servers.ts'

/** Session id of a sandboxd without a control server. */
const SANDBOXD_SESSION = /^[0-9a-z]{26}$/

type Environment = Readonly<Record<string, string | undefined>>

/** Completes an abbreviated session id from the server's list. */
async function completeSession(
  options: RunOptions,
  credential: ServerCredential,
): Promise<string | undefined> {
  const { session, typedUrl, url } = options
  const isComplete = session !== undefined && (isFullSessionId(session) || SANDBOXD_SESSION.test(session))
  if (session === undefined || isComplete || !isSessionPrefix(session)) return session
  const api = createApi({ origin: originOf(url), address: typedUrl, ...credential })
  // If the list fails, the attach reports what is wrong with the id.
  const found = await findSessions(api, session).catch(() => undefined)
  return found === undefined ? session : singleSession(found, session, ` --url ${shellQuote(typedUrl)}`)
}

async function attachTo(typed: RunOptions, env: Environment): Promise<number> {
  const credential = openCredential(typed.url, typed, env)
  const options = { ...typed, session: await completeSession(typed, credential) }
  // Its output would come back as its own output, without end.
  if (options.session !== undefined && options.session === env['SANDWIRE_SESSION'])
    throw new UsageError('Cannot attach a session to itself', 'attach from outside the sandbox')
  using program = new Program(options, env, credential)
  return await program.run()
}

/** Attaches until the remote process exits, the connection is lost or the user detaches; returns the exit code. */
export async function runAttach(options: RunOptions, env: Environment): Promise<number> {
  try {
    return await attachTo(options, env)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    const hint = formatHint(error.hint ?? 'sbx-stdio --help', programName(env))
    process.stderr.write(`sbx-stdio: ${error.message}\nhint: ${hint}\n`)
    return EXIT_USAGE
  }
}
