import { parseSeconds } from '../text/amounts.ts'
import { formatSeconds } from '../text/command-line.ts'
import { printable } from '../text/printable.ts'
import { webAddress } from '../server/address.ts'
import { formatJson } from '../text/table.ts'
import { UsageError } from '../errors/errors.ts'
import type { Command, CommandContext, CommandOptions } from './command.ts'
import { optionalSandbox, sessionOption } from './positionals.ts'
import { resolveSession, sandboxIdOf } from './session-id.ts'
import { decodeCreatedGrant } from './responses.ts'

const ROLES = ['viewer', 'collaborator'] as const

function parseRole(options: CommandOptions): (typeof ROLES)[number] | undefined {
  const text = options.value('role')
  const role = ROLES.find((each) => each === text)
  if (text !== undefined && role === undefined)
    throw new UsageError(`Option "--role" must be ${ROLES.join(' or ')}`)
  return role
}

function parseExpiry(options: CommandOptions): number | undefined {
  const text = options.value('expires')
  const seconds = text === undefined ? undefined : parseSeconds(text)
  if (text !== undefined && (seconds === undefined || seconds === 0))
    throw new UsageError('Option "--expires" must be a time such as 30m, 1h or 7d')
  return seconds
}

async function createGrant(
  body: { readonly session?: string } & Readonly<Record<string, unknown>>,
  { api, io, isJson, nowMs, program, urlOption }: CommandContext,
): Promise<void> {
  const response = await api.request('POST', '/api/grants', body)
  if (isJson) {
    io.print(formatJson(response))
    return
  }
  const created = decodeCreatedGrant(response)
  io.print(`${webAddress(created.link ?? '') ?? printable(created.grant)}\n`)
  if (created.notice !== undefined) io.info(printable(created.notice))
  const what = body.session === undefined ? 'the sandbox' : 'the session'
  const left = formatSeconds(Math.max(0, Math.round((created.expiresMs - nowMs) / 1000)))
  io.info(
    `gives ${printable(created.role)} access to ${what} for ${left}; the link works once, so send it privately`,
  )
  io.info(`revoke it with: ${program} revoke ${printable(created.grant)}${urlOption}`)
}

/** Creates a share link for a sandbox or one of its sessions. */
export const share: Command = {
  help: `Usage: sbx-stdio share SANDBOX [--session ID] [--role ROLE] [--expires TIME] [--label TEXT] [--json]

Prints a link that gives someone access. The first person who uses it gets the access; after that, the link no longer
works for anyone else. Send it privately. It can be used with sbx-stdio join or in a browser.

  --session ID         share only this session; SANDBOX can be omitted. A unique prefix of the id is enough
  --role ROLE          viewer (default): watches; collaborator: types, and so can read and change every file
  --expires TIME       how long the access lasts: 30m, 1h, 7d (default: 7d)
  --label TEXT         label in the list of sbx-stdio grants
`,
  options: { session: 'value', role: 'value', expires: 'value', label: 'value' },
  fields: {
    sandbox: { option: 'SANDBOX' },
    session: { option: '--session' },
    role: { option: '--role' },
    expiresSeconds: { option: '--expires', unit: 'seconds' },
    label: { option: '--label' },
  },
  parse: (options) => {
    const session = sessionOption(options)
    const sandbox = optionalSandbox(options)
    if (sandbox === undefined && session === undefined)
      throw new UsageError('No sandbox is given', 'sbx-stdio list')
    const role = parseRole(options)
    const expiresSeconds = parseExpiry(options)
    const label = options.value('label')
    const details = {
      ...(role === undefined ? {} : { role }),
      ...(expiresSeconds === undefined ? {} : { expiresSeconds }),
      ...(label === undefined ? {} : { label }),
    }
    const named = sandbox ?? (session === undefined ? undefined : sandboxIdOf(session))
    return {
      ...(named === undefined ? {} : { sandbox: named }),
      run: async (context) => {
        const id = session === undefined ? undefined : await resolveSession(session, context)
        const target = id === undefined ? { sandbox } : { sandbox: sandbox ?? sandboxIdOf(id), session: id }
        await createGrant({ ...target, ...details }, context)
      },
    }
  },
}
