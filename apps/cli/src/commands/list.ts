import { spellAge, spellJson, spellTable } from '../text/table.ts'
import type { Command } from './command.ts'
import { adviseOnNone } from './no-sandboxes.ts'
import { readNothing } from './positionals.ts'
import { decodeSandboxes, type Sandbox } from './views.ts'

const HEADER = ['NAME', 'STATE', 'NETWORK', 'AGE', 'ACTIVE', 'ID']

function describeState({ state, reason, ephemeral }: Sandbox): string {
  const remarks = [reason ?? undefined, ephemeral === true ? 'ephemeral' : undefined].filter(
    (remark) => remark !== undefined,
  )
  return remarks.length === 0 ? state : `${state} (${remarks.join(', ')})`
}

function describeNetwork({ network, isolation }: Sandbox): string {
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
    readNothing(words)
    return {
      run: async (context) => {
        const { api, io, isJson, nowMs } = context
        const answer = await api.request('GET', '/api/sandboxes')
        if (isJson) {
          io.print(spellJson(answer))
          return
        }
        const sandboxes = decodeSandboxes(answer)
        if (sandboxes.length === 0) {
          io.say(await adviseOnNone(context))
          return
        }
        const isShared = sandboxes.some(({ owner }) => owner !== undefined)
        const rows = sandboxes.map((sandbox) => [
          sandbox.name,
          describeState(sandbox),
          describeNetwork(sandbox),
          spellAge(sandbox.createdMs, nowMs),
          spellAge(sandbox.lastActivityMs, nowMs),
          sandbox.id,
          ...(isShared ? [sandbox.owner ?? '-'] : []),
        ])
        io.print(spellTable(isShared ? [...HEADER, 'SHARED BY'] : HEADER, rows, io.columns))
      },
    }
  },
}
