import { shellQuote } from '@sandwire/shell-quote'
import { accessCommand } from '../text/command-line.ts'
import { formatJson, formatTimeLeft, formatTable } from '../text/table.ts'
import type { Command, CommandContext } from './command.ts'
import { optionalSandbox } from './positionals.ts'
import { decodeGrants, decodeHeldGrants, type Grant, type HeldGrant } from './responses.ts'

const GIVEN_HEADER = ['GRANT', 'ROLE', 'ACCESS TO', 'HELD BY', 'EXPIRES IN', 'LABEL']
const HELD_HEADER = ['GRANT', 'ROLE', 'FROM', 'EXPIRES IN', 'SANDBOX', 'SESSION']

function printGivenGrants(
  grants: readonly Grant[],
  sandbox: string,
  { io, nowMs, program, urlOption }: CommandContext,
): void {
  if (grants.length === 0) {
    io.info(`${sandbox} is not shared; share it with: ${program} share ${sandbox}${urlOption}`)
    return
  }
  const rows = grants.map((grant) => [
    grant.grant,
    grant.role,
    grant.session ?? 'the sandbox',
    // An open grant is one whose share link was not used yet.
    grant.state === 'open' ? '(link not used)' : (grant.name ?? '?'),
    formatTimeLeft(grant.expiresMs, nowMs),
    grant.label,
  ])
  io.print(formatTable(GIVEN_HEADER, rows, io.columns))
  io.info(`revoke one with: ${program} revoke GRANT${urlOption}`)
}

function printHeldGrants(
  grants: readonly HeldGrant[],
  { io, nowMs, program, server, urlOption }: CommandContext,
): void {
  const [first] = grants
  if (first === undefined) {
    io.info(`nothing is shared with you; use a share link with: ${program} join`)
    return
  }
  const rows = grants.map((grant) => [
    grant.grant,
    grant.role,
    grant.owner,
    formatTimeLeft(grant.expiresMs, nowMs),
    grant.sandboxName ?? grant.sandbox,
    grant.session ?? 'all',
  ])
  io.print(formatTable(HELD_HEADER, rows, io.columns))
  const command =
    grants.length === 1
      ? accessCommand(program, server, first)
      : `${program} ${shellQuote(server)} --session SESSION`
  io.info(`attach with: ${command}`)
  io.info(`leave one with: ${program} leave GRANT${urlOption}`)
}

/** Lists grants. */
export const grants: Command = {
  help: `Usage: sbx-stdio grants [SANDBOX] [--json]

With SANDBOX, lists who else has access to it, and unused share links. Without, lists what is shared with you.
`,
  options: {},
  parse: (options) => {
    const sandbox = optionalSandbox(options)
    return {
      ...(sandbox === undefined ? {} : { sandbox }),
      run: async (context) => {
        const { api, io, isJson } = context
        const path = sandbox === undefined ? '/api/account/grants' : `/api/grants?sandbox=${sandbox}`
        const response = await api.request('GET', path)
        if (isJson) io.print(formatJson(response))
        else if (sandbox === undefined) printHeldGrants(decodeHeldGrants(response), context)
        else printGivenGrants(decodeGrants(response), sandbox, context)
      },
    }
  },
}
