import type { NetworkSpec } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { Action } from '../audit/actions.ts'
import { SCOPES } from '../auth/identity.ts'
import { type Ceilings, defaultSettings } from '../ceilings/ceilings.ts'
import type { GatewayAccess } from '../credentials/grants.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { SandboxSettings } from '../sandbox/record.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import type { RunSource } from './record.ts'

/** What an agent and the tools it runs need; see the limits of runs in docs/agents.md. */
const AGENT_LIMITS = {
  memoryBytes: 2 * 1024 ** 3,
  milliCpus: 2_000,
  pids: 512,
  diskBytes: 2 * 1024 ** 3,
} as const

/** How long the session of a clone is kept, so that its output can be read. */
const CLONE_KEEP_SECONDS = 600
/** How git shows a line of the gateway's refusal. */
const REFUSAL = 'remote: Sandwire: '
/** Longest message of a failed clone. */
const MAX_PROBLEM_CHARS = 500
/** Clones into the workspace, which is the working directory. The arguments are not part of the script. */
const CLONE_SCRIPT = 'git clone --quiet -- "$1" . && { [ -z "$2" ] || git checkout --quiet "$2" --; }'

/** The call of an owner on whose behalf control acts. */
export function ownerCall(
  { owner, ownerName }: { readonly owner: string; readonly ownerName: string },
  action?: Action,
): SandboxCall {
  return {
    identity: owner,
    name: ownerName,
    scopes: SCOPES.filter((scope) => scope !== 'operator'),
    address: '',
    requestId: crypto.randomUUID(),
    ...(action === undefined ? {} : { action }),
  }
}

/** Settings of a sandbox that is made for an agent. */
export function agentSandboxSettings(ceilings: Ceilings, network: NetworkSpec): SandboxSettings {
  const { sandbox } = ceilings
  return {
    ...defaultSettings(ceilings),
    network,
    limits: {
      memoryBytes: Math.min(AGENT_LIMITS.memoryBytes, sandbox.memoryBytes),
      milliCpus: Math.min(AGENT_LIMITS.milliCpus, sandbox.milliCpus),
      pids: Math.min(AGENT_LIMITS.pids, sandbox.pids),
      diskBytes: Math.min(AGENT_LIMITS.diskBytes, sandbox.diskBytes),
    },
  }
}

export interface CloneOptions {
  readonly lookup: Pick<SandboxLookup, 'sandbox'>
  readonly sandbox: string
  readonly call: SandboxCall
  readonly source: Extract<RunSource, { kind: 'repo' }>
  /** Session of the clone, once it has started. */
  readonly session: string | null
  readonly access: () => Promise<GatewayAccess>
  readonly mintSession: (sandbox: string) => string
  /** Stores the session. */
  readonly begun: (session: string) => void
}

/** Clones a repository into the workspace; false while that is in progress. Throws when it cannot be cloned. */
export async function cloneRepository(options: CloneOptions): Promise<boolean> {
  const { lookup, sandbox: id, call, source, session, access, mintSession, begun } = options
  const sandbox = lookup.sandbox(id)
  if (session === null) {
    const made = mintSession(id)
    const { env } = await access()
    const args = ['-c', CLONE_SCRIPT, 'clone', source.repo, source.ref ?? '']
    const request = {
      createId: crypto.randomUUID().replaceAll('-', ''),
      cmd: 'sh',
      args,
      env,
      mode: 'pipe',
      overflow: 'trim',
      keep: CLONE_KEEP_SECONDS,
    } as const
    unwrap(await sandbox.startProcess(call, made, request, {}))
    begun(made)
    return false
  }
  const { exit } = unwrap(await sandbox.showSession(call, session))
  if (exit === null) return false
  if (exit.code === 0) return true
  const { bytes } = unwrap(await sandbox.sessionOutput(call, session, 0))
  throw new SandwireError('git_failed', `Cannot clone the repository: ${describeClone(bytes)}`)
}

/** Why git could not clone. Where the gateway says why, git adds only the gateway's address. */
function describeClone(output: ArrayBuffer): string {
  const lines = new TextDecoder().decode(output).trim().split('\n')
  const refusals = lines.filter((line) => line.startsWith(REFUSAL)).map((line) => line.slice(REFUSAL.length))
  return (refusals.length > 0 ? refusals : lines).join(' ').slice(-MAX_PROBLEM_CHARS)
}
