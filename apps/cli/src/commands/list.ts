import { schema } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import type { Command, CommandContext } from './command.ts'
import { requireNoPositionals } from './positionals.ts'
import { decodeSandboxes, type Sandbox } from './responses.ts'
import { looseObject } from '../server/response.ts'
import { formatAge, formatJson, formatTable } from '../text/table.ts'

const whoSchema = looseObject({
  scopes: schema.list(schema.text(64), 16),
  guest: schema.bool,
  /** A name that the server accepts for the first one; some accept only this one. */
  firstSandbox: schema.optional(schema.text(64)),
})
const capabilitiesSchema = looseObject({ features: looseObject({ sandbox: schema.bool }) })

/** The response, or undefined if the request fails: only a hint depends on it. */
async function tryRequest<T>(
  { api }: CommandContext,
  path: string,
  expected: schema.Schema<T>,
): Promise<T | undefined> {
  try {
    return expected.decode(await api.request('GET', path))
  } catch {
    // The message then has no hint.
    return undefined
  }
}

/** The message for an empty list, with a command that this user may run. */
async function describeEmptyList(context: CommandContext): Promise<string> {
  const { program, server, urlOption } = context
  const [who, capabilities] = await Promise.all([
    tryRequest(context, '/api/whoami', whoSchema),
    tryRequest(context, '/api/capabilities', capabilitiesSchema),
  ])
  if (who?.guest === true) return `no sandboxes; list what is shared with you: ${program} grants${urlOption}`
  if (who?.scopes.includes('admin') !== true || capabilities === undefined) return 'no sandboxes'
  if (capabilities.features.sandbox)
    return `no sandboxes yet; create one: ${program} create ${shellQuote(who.firstSandbox ?? 'NAME')}${urlOption}`
  return `no sandboxes yet; the server creates its only one when you attach: ${program} ${shellQuote(server)}`
}

const HEADER = ['NAME', 'STATE', 'NETWORK', 'AGE', 'LAST ACTIVE', 'SAVED', 'ID']

function describeState({ state, reason, ephemeral }: Sandbox): string {
  const notices = [reason ?? undefined, ephemeral === true ? 'ephemeral' : undefined].filter(
    (notice) => notice !== undefined,
  )
  return notices.length === 0 ? state : `${state} (${notices.join(', ')})`
}

function formatNetwork({ network, isolation }: Sandbox): string {
  if (isolation === 'none') return 'open (not enforced)'
  if (network === undefined) return '-'
  return network.policy === 'allowlist' ? `allowlist (${network.allow.length})` : network.policy
}

/** States in which the newest version may lack changes. */
const UNSAVED: readonly string[] = ['pending', 'syncing', 'flushing']

function formatSaved({ saved }: Sandbox, nowMs: number): string {
  if (saved === null || saved === undefined) return '-'
  if (saved.error !== null) return `no (${saved.error})`
  if (UNSAVED.includes(saved.state)) return 'saving'
  return saved.savedMs === null ? '-' : `${formatAge(saved.savedMs, nowMs)} ago`
}

/** Lists sandboxes. */
export const list: Command = {
  help: `Usage: sbx-stdio list [--json]

Lists your sandboxes and those shared with you: name, state, network, age, time since the last activity,
when files were last saved, id, and owner.
`,
  options: {},
  parse: (options) => {
    requireNoPositionals(options)
    return {
      run: async (context) => {
        const { api, io, isJson, nowMs } = context
        const response = await api.request('GET', '/api/sandboxes')
        if (isJson) {
          io.print(formatJson(response))
          return
        }
        const sandboxes = decodeSandboxes(response)
        if (sandboxes.length === 0) {
          io.info(await describeEmptyList(context))
          return
        }
        const isShared = sandboxes.some(({ owner }) => owner !== undefined)
        const rows = sandboxes.map((sandbox) => [
          sandbox.name,
          describeState(sandbox),
          formatNetwork(sandbox),
          formatAge(sandbox.createdMs, nowMs),
          formatAge(sandbox.lastActivityMs, nowMs),
          formatSaved(sandbox, nowMs),
          sandbox.id,
          ...(isShared ? [sandbox.owner ?? '-'] : []),
        ])
        io.print(formatTable(isShared ? [...HEADER, 'OWNER'] : HEADER, rows, io.columns))
      },
    }
  },
}
