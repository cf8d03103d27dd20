import { shellQuote } from '@sandwire/shell-quote'
import { accessCommand } from '../text/command-line.ts'
import { formatJson, formatTimeLeft, formatTable } from '../text/table.ts'
import type { Command, CommandContext } from './command.ts'
import { optionalSandbox } from './positionals.ts'
import { decodeGrants, decodeHeldGrants, type Grant, type HeldGrant } from './responses.ts'

const GIVEN_HEADER = ['GRANT', 'ROLE', 'OF', 'HELD BY', 'ENDS IN', 'LABEL']
const HELD_HEADER = ['GRANT', 'ROLE', 'FROM', 'ENDS IN', 'SANDBOX', 'SESSION']

function printGivenGrants(
  grants: readonly Grant[],
  sandbox: string,
  { io, nowMs, program, urlOption }: CommandContext,
): void {
  if (grants.length === 0) {
    io.say(`${sandbox} is shared with nobody; share it: ${program} share ${sandbox}${urlOption}`)
    return
  }
  const rows = grants.map((grant) => [
    grant.grant,
    grant.role,
    grant.session ?? 'the sandbox',
    grant.state === 'open' ? '(link not used yet)' : (grant.name ?? '?'),
    formatTimeLeft(grant.expiresMs, nowMs),
    grant.label,
  ])
  io.print(formatTable(GIVEN_HEADER, rows, io.columns))
  io.say(`withdraw one with: ${program} revoke GRANT${urlOption}`)
}

function printHeldGrants(
  grants: readonly HeldGrant[],
  { io, nowMs, program, server, urlOption }: CommandContext,
): void {
  const [first] = grants
  if (first === undefined) {
    io.say(`nothing is shared with you; use a link with: ${program} join`)
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
  const way =
    grants.length === 1
      ? accessCommand(program, server, first)
      : `${program} ${shellQuote(server)} --session SESSION`
  io.say(`come back with: ${way}`)
  io.say(`leave one with: ${program} leave GRANT${urlOption}`)
}

/** Shows what is shared. */
export const grants: Command = {
  help: `Usage: sbx-stdio grants [SANDBOX] [--json]

With SANDBOX, lists who may use it besides you, and links that nobody used yet. Without, what others share with you.
`,
  options: {},
  read: (words) => {
    const sandbox = optionalSandbox(words)
    return {
      ...(sandbox === undefined ? {} : { sandbox }),
      run: async (context) => {
        const { api, io, isJson } = context
        const path = sandbox === undefined ? '/api/account/grants' : `/api/grants?sandbox=${sandbox}`
        const answer = await api.request('GET', path)
        if (isJson) io.print(formatJson(answer))
        else if (sandbox === undefined) printHeldGrants(decodeHeldGrants(answer), context)
        else printGivenGrants(decodeGrants(answer), sandbox, context)
      },
    }
  },
}
