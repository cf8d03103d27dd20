import { shellQuote } from '@sandwire/shell-quote'
import { programName, formatHint } from '../text/command-line.ts'
import { Program } from './program.ts'
import { findSessions, isSessionPrefix, isFullSessionId, singleSession } from '../commands/session-id.ts'
import { EXIT_USAGE } from '../errors/exit-code.ts'
import type { RunOptions } from '../options/attach-options.ts'
import { UsageError } from '../options/words.ts'
import { createApi } from '../server/api.ts'
import { type Access, openCredential } from '../server/find-server.ts'
import { originOf } from '../server/known-servers.ts'

/** What a sandboxd without a server before it calls its sessions. */
const OF_SANDBOXD = /^[0-9a-z]{26}$/

type Environment = Readonly<Record<string, string | undefined>>

/** The session that is meant, where its id is not typed whole and the server has a list to find it in. */
async function completeSession(options: RunOptions, access: Access): Promise<string | undefined> {
  const { session, typedUrl, url } = options
  const isTypedWhole = session !== undefined && (isFullSessionId(session) || OF_SANDBOXD.test(session))
  if (session === undefined || isTypedWhole || !isSessionPrefix(session)) return session
  const api = createApi({ origin: originOf(url), address: typedUrl, ...access })
  // Without a list, the server says what is wrong with the id.
  const found = await findSessions(api, session).catch(() => undefined)
  return found === undefined ? session : singleSession(found, session, ` --url ${shellQuote(typedUrl)}`)
}

async function attachTo(typed: RunOptions, env: Environment): Promise<number> {
  const access = openCredential(typed.url, typed, env)
  const options = { ...typed, session: await completeSession(typed, access) }
  // Its output would be its own input to the screen, without end.
  if (options.session !== undefined && options.session === env['SANDWIRE_SESSION'])
    throw new UsageError('Cannot attach a session to itself', 'join it from outside the sandbox')
  using program = new Program(options, env, access)
  return await program.run()
}

/** Runs until the remote process ends, the link is lost for good, or the user leaves; returns the exit code. */
export async function run(options: RunOptions, env: Environment): Promise<number> {
  try {
    return await attachTo(options, env)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    const hint = formatHint(error.hint ?? 'sbx-stdio --help', programName(env))
    process.stderr.write(`sbx-stdio: ${error.message}\nhint: ${hint}\n`)
    return EXIT_USAGE
  }
}
