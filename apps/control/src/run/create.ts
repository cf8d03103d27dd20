import type { RunSettings } from '@sandwire/operator-settings'
import type { NetworkSpec } from '@sandwire/internal-api'
import { sandboxIdOfRun } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { sha256Hex } from '../bytes.ts'
import { type Ceilings } from '../ceilings/ceilings.ts'
import { ceilingError } from '../ceilings/check-ceilings.ts'
import type { GatewayGrants } from '../credentials/grants.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { IdMint } from '../sandbox/sandbox-id.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { checkModel } from './agent-start.ts'
import { findAgent } from './agents.ts'
import type { RunLimits, RunRecord, RunRequest, RunSource } from './record.ts'
import { listedView, type RunView, viewOf } from './view.ts'

/** What a caller requests, before defaults. */
export interface RunOrder {
  /** A repository to clone, or the id of a sandbox with the files. */
  readonly source: Extract<RunSource, { kind: 'repo' }> | { readonly kind: 'sandbox'; readonly id: string }
  readonly task: string
  readonly context?: string | undefined
  readonly agent?: string | undefined
  readonly model?: string | undefined
  readonly permission?: 'auto' | 'ask' | undefined
  readonly limits?: { readonly [Name in keyof RunLimits]?: RunLimits[Name] | undefined } | undefined
  readonly network?: NetworkSpec | undefined
  readonly keep?: boolean | undefined
  readonly interactive?: boolean | undefined
  /** Hosts with a header rule of the operator. */
  readonly hosts?: readonly string[] | undefined
  readonly purpose?: RunRequest['purpose']
  readonly stream?: RunRequest['stream']
  /** The server's own time limit, in place of that of runs. */
  readonly wallClockSeconds?: number
}

export interface CreateRunDependencies {
  readonly lookup: SandboxLookup
  readonly mint: IdMint
  readonly settings: RunSettings
  readonly ceilings: Ceilings
  readonly grants: Pick<GatewayGrants, 'check'>
  readonly nowMs: () => number
}

function matchesModel(pattern: string, model: string): boolean {
  return pattern.endsWith('*') ? model.startsWith(pattern.slice(0, -1)) : pattern === model
}

/** A limit as requested; throws above the server's own. */
function within(name: keyof RunLimits, asked: number | null | undefined, highest: number): number {
  if (asked === undefined || asked === null) return highest
  if (asked > highest)
    throw new SandwireError('bad_request', `Cannot use "limits.${name}": expected at most ${highest}`, {
      details: { field: `limits.${name}`, problem: `expected at most ${highest}` },
    })
  return asked
}

function limitsOf(asked: RunOrder['limits'], settings: RunSettings): RunLimits {
  const { wallClockSeconds, idleSeconds, approvalSeconds, budgetUsd } = settings
  const turns = settings.turns === 0 ? (asked?.turns ?? null) : within('turns', asked?.turns, settings.turns)
  return {
    wallClockSeconds: within('wallClockSeconds', asked?.wallClockSeconds, wallClockSeconds),
    idleSeconds: within('idleSeconds', asked?.idleSeconds, idleSeconds),
    approvalSeconds: within('approvalSeconds', asked?.approvalSeconds, approvalSeconds),
    turns,
    budgetUsd: within('budgetUsd', asked?.budgetUsd, budgetUsd),
  }
}

/** The requested model or the agent's default; throws for one that the operator does not allow. */
export function chooseModel(
  agent: string,
  asked: string | undefined,
  { model: fallback, models, providers }: RunSettings,
): string | undefined {
  const model = asked ?? providers[agent]?.model ?? fallback
  if (model !== undefined && models.length > 0 && !models.some((each) => matchesModel(each, model)))
    throw new SandwireError('bad_request', `Cannot use "model": expected ${models.join(' or ')}`, {
      details: { field: 'model', problem: `expected ${models.join(' or ')}` },
    })
  return model
}

/** The requested network or none; throws for one that the operator does not allow. */
export function chooseNetwork(
  asked: NetworkSpec | undefined,
  ceilings: Ceilings,
  action: string,
): NetworkSpec {
  const network = asked ?? { policy: 'none', allow: [] }
  if (!ceilings.sandbox.networks.includes(network.policy))
    throw ceilingError(
      { level: 'sandbox', resource: 'networks', limit: ceilings.sandbox.networks, asked: network.policy },
      action,
    )
  return network
}

/** Completes a request with the server's defaults; throws for what the operator does not allow. */
function completeRequest(order: RunOrder, settings: RunSettings, ceilings: Ceilings): RunRequest {
  const agent = findAgent(settings, order.agent ?? 'claude').name
  const model = chooseModel(agent, order.model, settings)
  const network = chooseNetwork(order.network, ceilings, 'create the run')
  const { source } = order
  return {
    source: source.kind === 'repo' ? source : { kind: 'sandbox' },
    task: order.task,
    ...(order.context === undefined ? {} : { context: order.context }),
    agent,
    ...(model === undefined ? {} : { model }),
    permission: order.permission ?? 'auto',
    limits: {
      ...limitsOf(order.limits, settings),
      ...(order.wallClockSeconds === undefined ? {} : { wallClockSeconds: order.wallClockSeconds }),
    },
    network,
    // A sandbox that existed before stays, unless its owner says otherwise.
    keep: order.keep ?? source.kind === 'sandbox',
    isInteractive: order.interactive ?? false,
    ...(order.hosts === undefined ? {} : { hosts: order.hosts }),
    purpose: order.purpose ?? 'change',
    ...(order.stream === undefined ? {} : { stream: order.stream }),
  }
}

/** Creates a run and begins it. With a key, a repeated request returns the run of the first one. */
export async function createRun(
  { lookup, mint, settings, ceilings, grants, nowMs }: CreateRunDependencies,
  call: SandboxCall,
  order: RunOrder,
  key?: string,
): Promise<RunView> {
  const request = completeRequest(order, settings, ceilings)
  await checkModel(grants, settings, request)
  const sandbox = order.source.kind === 'sandbox' ? order.source.id : await mint.mintSandbox()
  const recordOf = (id: string): RunRecord => ({
    id,
    owner: call.identity,
    ownerName: call.name,
    sandbox: sandboxIdOfRun(id) ?? sandbox,
    request,
    createdMs: nowMs(),
    state: { kind: 'queued' },
    preparingSinceMs: null,
    stoppingSinceMs: null,
    deadlineMs: null,
    journal: null,
    cloneSession: null,
    agent: null,
    result: null,
    diffBytes: null,
    isEndReported: false,
    spent: null,
  })
  const claim = {
    // Keys of streams are the server's own: of clients that start the same session, the first one's options are used.
    requestHash: await sha256Hex(order.stream === undefined ? JSON.stringify(order) : (key ?? '')),
    ...(key === undefined ? {} : { key: await sha256Hex(key) }),
  }
  const view = listedView(viewOf(recordOf(mint.mintRun(sandbox))))
  const id = unwrap(await lookup.account(call.identity).claimRun(view, claim))
  // Also for an earlier run: its request may have been interrupted between the two objects.
  return unwrap(await lookup.run(id).create(recordOf(id), call))
}
