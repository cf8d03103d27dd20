import type { RunSettings } from '@sandwire/operator-settings'
import type { NetworkSpec } from '@sandwire/internal-api'
import { sandboxIdOfConversation } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { Ceilings } from '../ceilings/ceilings.ts'
import type { GatewayGrants } from '../credentials/grants.ts'
import { unwrap } from '../outcome.ts'
import { checkModel } from '../run/agent-start.ts'
import { findAgent } from '../run/agents.ts'
import { chooseModel, chooseNetwork } from '../run/create.ts'
import type { RunSource } from '../run/record.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { IdMint } from '../sandbox/sandbox-id.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import type { ConversationRecord } from './record.ts'
import type { ConversationSettings } from './settings.ts'
import { ConversationState } from './state.ts'
import { type ConversationView, viewOf } from './view.ts'

/** What a caller requests, before defaults. */
export interface ConversationOrder {
  /** A repository to clone, a sandbox with the files, or an empty sandbox. */
  readonly source:
    | Extract<RunSource, { kind: 'repo' }>
    | { readonly kind: 'sandbox'; readonly id: string }
    | { readonly kind: 'empty' }
  readonly sessionId?: string | undefined
  readonly agent?: string | undefined
  readonly model?: string | undefined
  readonly permission?: 'auto' | 'ask' | undefined
  readonly network?: NetworkSpec | undefined
  readonly budgetUsd?: number | undefined
  readonly systemPrompt?: string | undefined
}

export interface CreateConversationDependencies {
  readonly lookup: SandboxLookup
  readonly mint: IdMint
  readonly runs: RunSettings
  readonly settings: ConversationSettings
  readonly ceilings: Ceilings
  readonly grants: Pick<GatewayGrants, 'check'>
  readonly nowMs: () => number
}

/** Creates a conversation; its sandbox is made with the first message. A known `sessionId` returns the conversation of that name. */
export async function createConversation(
  { lookup, mint, runs, settings, ceilings, grants, nowMs }: CreateConversationDependencies,
  call: SandboxCall,
  order: ConversationOrder,
): Promise<ConversationView> {
  const { source, sessionId, permission = 'ask', systemPrompt, budgetUsd = settings.budgetUsd } = order
  if (budgetUsd > settings.budgetUsd)
    throw new SandwireError('bad_request', `Cannot use "budgetUsd": expected at most ${settings.budgetUsd}`, {
      details: { field: 'budgetUsd', problem: `expected at most ${settings.budgetUsd}` },
    })
  const agent = findAgent(runs, order.agent ?? 'claude').name
  const model = chooseModel(agent, order.model, runs)
  const network = chooseNetwork(order.network, ceilings, 'create the conversation')
  await checkModel(grants, runs, { agent, model })
  const sandbox = source.kind === 'sandbox' ? source.id : await mint.mintSandbox()
  const recordOf = (id: string): ConversationRecord => ({
    id,
    owner: call.identity,
    ownerName: call.name,
    sessionId: sessionId ?? null,
    sandbox: sandboxIdOfConversation(id) ?? sandbox,
    isOwnSandbox: source.kind !== 'sandbox',
    request: {
      source: source.kind === 'sandbox' ? { kind: 'sandbox' } : source,
      agent,
      ...(model === undefined ? {} : { model }),
      permission,
      network,
      budgetUsd,
      ...(systemPrompt === undefined ? {} : { systemPrompt }),
    },
    createdMs: nowMs(),
    usedMs: nowMs(),
    title: '',
    cloneSession: null,
    isCloned: false,
    spent: null,
  })
  const id = mint.mintConversation(sandbox)
  const view = viewOf(recordOf(id), new ConversationState(id))
  const claimed = unwrap(await lookup.account(call.identity).claimConversation(view))
  // Also for an earlier one: its request may have been interrupted between the two objects.
  return unwrap(await (await lookup.conversation(claimed)).create(recordOf(claimed), call))
}
