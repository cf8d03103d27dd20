import type { Env } from '../env.ts'
import { within } from '../http/within.ts'
import { unwrap } from '../outcome.ts'
import type { Provider } from '../providers/provider.ts'
import { runtimeOf } from '../runtime.ts'
import { AuditTrail } from './audit-trail.ts'
import { SandboxLife } from './life.ts'
import { SandboxdClient } from './sandboxd-client.ts'
import { SandboxSessions } from './sessions.ts'
import { type Cut, SandboxSharing } from './sharing.ts'
import type { SandboxStore } from './store.ts'

/** What a sandbox's object is made of. */
export interface SandboxParts {
  readonly life: SandboxLife
  readonly sessions: SandboxSessions
  readonly sharing: SandboxSharing
  readonly provider: Provider
  readonly trail: AuditTrail
}

/** When what could not be told is tried again, unless something else rings sooner. */
const RETRY_MS = 5_000
/** How long the owner's account may take to write down what it is told. */
const DELIVERY_MS = 10_000

export async function openParts(
  ctx: DurableObjectState,
  env: Env,
  store: SandboxStore,
): Promise<SandboxParts> {
  const { config, log, nowMs, sleep, keys } = runtimeOf(env)
  const { provider } = runtimeOf(env)
  const { signer } = await keys()
  const account = (owner: string) => env.ACCOUNT.get(env.ACCOUNT.idFromName(owner))
  const sandboxd = (sandbox: string): SandboxdClient =>
    new SandboxdClient({ sandbox, provider, signer, nowMs })
  const life = new SandboxLife({
    store,
    provider,
    sandboxd,
    publicKey: signer.publicKey,
    settings: config,
    nowMs,
    log,
    index: {
      report: async (owner, view, sessions) => unwrap(await account(owner).report(view, sessions)),
      remove: async (owner, sandbox) => unwrap(await account(owner).remove(sandbox)),
    },
    alarm: {
      set: (atMs) => ctx.storage.setAlarm(atMs),
      // What the audit has not been told yet needs another try, running or not.
      clear: () =>
        store.audit.isEmpty ? ctx.storage.deleteAlarm() : ctx.storage.setAlarm(nowMs() + RETRY_MS),
    },
    deleteAll: () => ctx.storage.deleteAll(),
  })
  const sessions = new SandboxSessions({ life, store, sandboxd, nowMs, sleep })
  const cutting: Cut = { cut: () => Promise.resolve() }
  const sharing = new SandboxSharing({
    ...{ life, sessions, store, cutting, nowMs },
    ticketMs: config.ticketMs,
    holders: {
      tell: async (holder, held) => unwrap(await account(holder).addShared(held)),
      drop: async (holder, grant) => unwrap(await account(holder).dropShared(grant)),
    },
    random: (bytes) => crypto.getRandomValues(bytes),
  })
  const trail = new AuditTrail({
    ...{ store, nowMs },
    deliver: async (owner, entries) => {
      const tell = async (): Promise<void> => unwrap(await account(owner).recordAudit(entries))
      await within(tell(), DELIVERY_MS, () => new Error('The account does not answer'))
    },
    wake: async () => {
      if ((await ctx.storage.getAlarm()) === null) await ctx.storage.setAlarm(nowMs() + RETRY_MS)
    },
    mintId: () => crypto.randomUUID(),
  })
  return { life, provider, sessions, sharing, trail }
}
