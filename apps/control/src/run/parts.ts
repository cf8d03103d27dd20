import { SandwireError } from '@sandwire/protocol'
import { type GatewayGrants, gatewayGrantsOf } from '../credentials/grants.ts'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { ensureAgentProgram } from './agent-program.ts'
import { findAgent } from './agents.ts'
import { agentStartOf, checkModel, grantOf, toSpent } from './agent-start.ts'
import { type DiffStore, openDiffStore } from './diff-store.ts'
import { RunLifecycle } from './lifecycle.ts'
import { RunSandboxClient } from './sandbox-client.ts'
import type { RunStore } from './store.ts'
import { listedView, viewOf } from './view.ts'

/** Containers may lose their files at any time, so their events are pulled more often. */
const POLL_MS = { host: 5_000, container: 1_000, sprites: 5_000 } as const

/** The mechanisms of a run's object. */
export interface RunParts {
  readonly lifecycle: RunLifecycle
  readonly sandbox: RunSandboxClient
  readonly grants: GatewayGrants
  readonly diffs: DiffStore
  readonly packs: DiffStore
}

/** A run that ends before it was prepared has no grant. */
async function ifGranted<T>(run: () => Promise<T>): Promise<T | undefined> {
  try {
    return await run()
  } catch (error) {
    if (SandwireError.from(error).code === 'not_found') return undefined
    throw error
  }
}

export async function openRunParts({
  env,
  store,
  wakeAt,
}: {
  readonly env: Env
  readonly store: RunStore
  readonly wakeAt: (atMs: number) => Promise<void>
}): Promise<RunParts> {
  const { config, ceilings, log, nowMs, keys, segments } = runtimeOf(env)
  const { mint } = await keys()
  const grants = gatewayGrantsOf(env)
  const record = () => {
    const found = store.read()
    if (found === undefined) throw new Error('There is no run')
    return found
  }
  const account = () => env.ACCOUNT.get(env.ACCOUNT.idFromName(record().owner))
  const access = () => grants.create(grantOf(record(), config.runs, nowMs()))
  const sandbox = new RunSandboxClient({
    store,
    lookup: new SandboxLookup(env, mint),
    ceilings,
    access,
    mintSession: (id) => mint.mintSession(id),
  })
  const openStore = (file: 'patch' | 'pack'): DiffStore => ({
    write: (content) => openDiffStore(record().id, store, segments, file).write(content),
    read: () => openDiffStore(record().id, store, segments, file).read(),
    delete: () => openDiffStore(record().id, store, segments, file).delete(),
  })
  const diffs = openStore('patch')
  const packs = openStore('pack')
  const lifecycle = new RunLifecycle({
    store,
    sandbox,
    diffs,
    packs,
    ensureProgram: () => ensureAgentProgram(env, config, findAgent(config.runs, record().request.agent)),
    pollMs: POLL_MS[config.provider],
    nowMs,
    log,
    wakeAt,
    credentials: {
      check: () => checkModel(grants, config.runs, record().request),
      prepare: async () => agentStartOf(record(), await access(), config.runs),
      spent: async () => {
        const usage = await ifGranted(() => grants.usage(record().id))
        return usage === undefined ? null : toSpent(usage)
      },
      end: async () => void (await ifGranted(() => grants.end(record().id))),
    },
    index: {
      admit: async () => unwrap(await account().admitRun(record().id)),
      report: async (changed) => {
        const storedBytes = changed.state.kind === 'ended' ? store.sizeBytes + (changed.diffBytes ?? 0) : 0
        unwrap(await account().reportRun(listedView(viewOf(changed)), storedBytes))
      },
    },
  })
  return { lifecycle, sandbox, grants, diffs, packs }
}
