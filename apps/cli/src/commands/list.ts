import { shape } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import type { Command, CommandContext } from './command.ts'
import { requireNoPositionals } from './positionals.ts'
import { decodeSandboxes, type Sandbox } from './responses.ts'
import { openRecord } from '../server/response.ts'
import { formatAge, formatJson, formatTable } from '../text/table.ts'

const whoShape = openRecord({ scopes: shape.list(shape.text(64), 16), guest: shape.bool })
const capabilitiesShape = openRecord({ features: openRecord({ sandbox: shape.bool }) })

/** An answer, or undefined where the server has none: advice is left out then. */
async function ask<T>(
  { api }: CommandContext,
  path: string,
  expected: shape.Shape<T>,
): Promise<T | undefined> {
  try {
    return expected.decode(await api.request('GET', path))
  } catch {
    // What was asked for has been answered; only advice depends on this.
    return undefined
  }
}

/** What to say to somebody who sees no sandboxes: how to get one, where that is possible for them. */
export async function reportEmptyList(context: CommandContext): Promise<string> {
  const { program, server, urlOption } = context
  const [who, capabilities] = await Promise.all([
    ask(context, '/api/whoami', whoShape),
    ask(context, '/api/capabilities', capabilitiesShape),
  ])
  if (who?.guest === true) return `no sandboxes; see what is shared with you: ${program} grants${urlOption}`
  if (who?.scopes.includes('admin') !== true || capabilities === undefined) return 'no sandboxes'
  if (capabilities.features.sandbox) return `no sandboxes yet; make one: ${program} create NAME${urlOption}`
  return `no sandboxes yet; this server has one, which is made when something runs in it: ${program} ${shellQuote(server)}`
}

const HEADER = ['NAME', 'STATE', 'NETWORK', 'AGE', 'ACTIVE', 'ID']

function describeState({ state, reason, ephemeral }: Sandbox): string {
  const notices = [reason ?? undefined, ephemeral === true ? 'ephemeral' : undefined].filter(
    (remark) => remark !== undefined,
  )
  return notices.length === 0 ? state : `${state} (${notices.join(', ')})`
}

function formatNetwork({ network, isolation }: Sandbox): string {
  // Nothing enforces the policy there.
  if (isolation === 'none') return 'unrestricted'
  if (network === undefined) return '-'
  return network.policy === 'allowlist' ? `allowlist (${network.allow.length})` : network.policy
}

/** Shows the sandboxes of the account. */
export const list: Command = {
  help: `Usage: sbx-stdio list [--json]

Lists your sandboxes and those that others share with you: name, state, network, age, when something last happened in
it, id, and whose it is.
`,
  options: {},
  read: (words) => {
    requireNoPositionals(words)
    return {
      run: async (context) => {
        const { api, io, isJson, nowMs } = context
        const answer = await api.request('GET', '/api/sandboxes')
        if (isJson) {
          io.print(formatJson(answer))
          return
        }
        const sandboxes = decodeSandboxes(answer)
        if (sandboxes.length === 0) {
          io.say(await reportEmptyList(context))
          return
        }
        const isShared = sandboxes.some(({ owner }) => owner !== undefined)
        const rows = sandboxes.map((sandbox) => [
          sandbox.name,
          describeState(sandbox),
          formatNetwork(sandbox),
          formatAge(sandbox.createdMs, nowMs),
          formatAge(sandbox.lastActivityMs, nowMs),
          sandbox.id,
          ...(isShared ? [sandbox.owner ?? '-'] : []),
        ])
        io.print(formatTable(isShared ? [...HEADER, 'SHARED BY'] : HEADER, rows, io.columns))
      },
    }
  },
}
