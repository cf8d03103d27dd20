import { parseSeconds } from '../text/amounts.ts'
import { formatSeconds } from '../text/command-line.ts'
import { printable } from '../text/printable.ts'
import { webAddress } from '../server/address.ts'
import { formatJson } from '../text/table.ts'
import { UsageError } from '../options/words.ts'
import type { Command, CommandContext, CommandOptions } from './command.ts'
import { optionalSandbox, sessionOption } from './positionals.ts'
import { resolveSession, sandboxIdOf } from './session-id.ts'
import { decodeCreatedGrant } from './responses.ts'

const ROLES = ['viewer', 'collaborator'] as const

function readRole(words: CommandOptions): (typeof ROLES)[number] | undefined {
  const text = words.one('role')
  const role = ROLES.find((each) => each === text)
  if (text !== undefined && role === undefined)
    throw new UsageError(`Option "--role" takes ${ROLES.join(' or ')}`)
  return role
}

function readExpiry(words: CommandOptions): number | undefined {
  const text = words.one('expires')
  const seconds = text === undefined ? undefined : parseSeconds(text)
  if (text !== undefined && (seconds === undefined || seconds === 0))
    throw new UsageError('Option "--expires" takes a time such as 30m, 1h or 7d')
  return seconds
}

async function make(
  body: { readonly session?: string } & Readonly<Record<string, unknown>>,
  { api, io, isJson, nowMs, program, urlOption }: CommandContext,
): Promise<void> {
  const answer = await api.request('POST', '/api/grants', body)
  if (isJson) {
    io.print(formatJson(answer))
    return
  }
  const made = decodeCreatedGrant(answer)
  io.print(`${webAddress(made.link ?? '') ?? printable(made.grant)}\n`)
  if (made.notice !== undefined) io.say(printable(made.notice))
  const what = body.session === undefined ? 'the sandbox' : 'the session'
  const left = formatSeconds(Math.max(0, Math.round((made.expiresMs - nowMs) / 1000)))
  io.say(
    `a ${printable(made.role)} of ${what} for ${left}; the link works once, so give it to them in private`,
  )
  io.say(`withdraw it with: ${program} revoke ${printable(made.grant)}${urlOption}`)
}

/** Makes a link to a sandbox or to one session of it. */
export const share: Command = {
  help: `Usage: sbx-stdio share SANDBOX [--session ID] [--role ROLE] [--expires TIME] [--label TEXT] [--json]

Prints a link that gives somebody else access. It works once, for whoever uses it first, and after that for them alone.
Give it to them in private: they run sbx-stdio join, or open it in a browser.

  --session ID         share one session and nothing else; SANDBOX need not be given then. The beginning of its id is
                       enough where only one begins so
  --role ROLE          viewer (default: watches), or collaborator (types, and so reads and changes every file)
  --expires TIME       how long the access lasts: 30m, 1h, 7d (default: 7d)
  --label TEXT         what you call it in the list of sbx-stdio grants
`,
  options: { session: 'once', role: 'once', expires: 'once', label: 'once' },
  fields: {
    sandbox: { option: 'SANDBOX' },
    session: { option: '--session' },
    role: { option: '--role' },
    expiresSeconds: { option: '--expires', counts: 'seconds' },
    label: { option: '--label' },
  },
  read: (words) => {
    const session = sessionOption(words)
    const sandbox = optionalSandbox(words)
    if (sandbox === undefined && session === undefined)
      throw new UsageError('No sandbox is given', 'sbx-stdio list')
    const role = readRole(words)
    const expiresSeconds = readExpiry(words)
    const label = words.one('label')
    const details = {
      ...(role === undefined ? {} : { role }),
      ...(expiresSeconds === undefined ? {} : { expiresSeconds }),
      ...(label === undefined ? {} : { label }),
    }
    const named = sandbox ?? (session === undefined ? undefined : sandboxIdOf(session))
    return {
      ...(named === undefined ? {} : { sandbox: named }),
      run: async (context) => {
        const whole = session === undefined ? undefined : await resolveSession(session, context)
        const place =
          whole === undefined ? { sandbox } : { sandbox: sandbox ?? sandboxIdOf(whole), session: whole }
        await make({ ...place, ...details }, context)
      },
    }
  },
}
