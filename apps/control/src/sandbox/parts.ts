import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import type { Provider } from '../providers/provider.ts'
import { runtimeOf } from '../runtime.ts'
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
}

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
      clear: () => ctx.storage.deleteAlarm(),
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
  return { life, provider, sessions, sharing }
}
