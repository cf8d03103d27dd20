import { withTimeout } from '@sandwire/async'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import type { Provider } from '../providers/provider.ts'
import { runtimeOf } from '../runtime.ts'
import { AuditTrail } from './audit-trail.ts'
import { Cutting } from './cutting.ts'
import { LateRefusals } from './late-refusals.ts'
import { SandboxLife } from './life.ts'
import { OutputBudget } from './output-budget.ts'
import { PtySessions } from '../compat/pty-sessions.ts'
import { Reauthorizing } from './reauthorizing.ts'
import { SandboxdClient } from './sandboxd-client.ts'
import { SessionNames } from './session-names.ts'
import { SandboxSessions } from './sessions.ts'
import { SandboxSharing } from './sharing.ts'
import type { SandboxStore } from './store.ts'
import { ProxiedRequests } from '../workspace-proxy/requests.ts'
import { WakeUp } from './wake-up.ts'
import { WorkspaceProxy } from '../workspace-proxy/proxy.ts'

/** What a sandbox's object is made of. */
export interface SandboxParts {
  readonly life: SandboxLife
  readonly sessions: SandboxSessions
  readonly sharing: SandboxSharing
  readonly cutting: Cutting
  readonly reauthorizing: Reauthorizing
  /** Sets the alarm for whatever waits beside the life of the sandbox. */
  readonly rearm: () => Promise<void>
  readonly provider: Provider
  /** Finds or starts the sessions of compat clients. */
  readonly ptySessions: PtySessions
  readonly trail: AuditTrail
  readonly workspace: WorkspaceProxy
}

/** When what could not be told is tried again, unless something else rings sooner. */
const RETRY_MS = 5_000
/**
 * How long what was written down may wait for its first try, should the object die right after. No shorter than it has to
 * be: while the sandbox runs, its own alarm is there by then, and every alarm asks how it is.
 */
const UNTOLD_MS = 60_000
/** How long rows gather before the account is told: each time costs it a write, which whoever asks it waits for. */
const TELL_AFTER_MS = 250
/** How long an object lives on that can start no container. */
const STUCK_MS = 250
/** Between two alarms at least. */
const MIN_PAUSE_MS = 250
/** How long an account may take to write down what it is told, or to answer. */
const DELIVERY_MS = 10_000

export async function openParts(
  ctx: DurableObjectState,
  env: Env,
  store: SandboxStore,
): Promise<SandboxParts> {
  const { config, log, nowMs, sleep, keys, providerOf, workspaceBreakers } = runtimeOf(env)
  const requests = new ProxiedRequests()
  const provider = providerOf({
    container: ctx.container,
    store: store.container,
    hasInternet: env.OUTSIDE === undefined,
    wayTo: (network) => ctx.exports.Egress({ props: { sandbox: store.read()?.id ?? '', network } }),
    hold: (work) => ctx.waitUntil(work),
    // The alarm finds out what became of it, and tells.
    onLost: () => ctx.waitUntil(wakeUp.by(nowMs())),
    // The next object gets a new look at the engine. Who asked is answered first.
    onStuck: () => ctx.waitUntil(sleep(STUCK_MS).then(() => ctx.abort('The container cannot be started'))),
  })
  const { signer, sessionTokens } = await keys()
  const account = (owner: string) => env.ACCOUNT.get(env.ACCOUNT.idFromName(owner))
  const inTime = <T>(ask: () => Promise<T>): Promise<T> =>
    withTimeout(ask(), DELIVERY_MS, () => new Error('The account does not answer'))
  const sandboxd = (sandbox: string): SandboxdClient =>
    new SandboxdClient({ sandbox, provider, signer, nowMs })
  const wakeUp = new WakeUp(ctx.storage)
  const cutting = new Cutting({
    store,
    provider,
    sandboxd,
    requests,
    nowMs,
    sleep,
    log,
    mintRequestId: () => crypto.randomUUID(),
    wakeBy: (atMs) => wakeUp.by(atMs),
  })
  const reauthorizing = new Reauthorizing({
    store,
    cutting,
    nowMs,
    log,
    lookMs: config.alarmMs,
    registrar: {
      keeps: (owner, login) => inTime(async () => unwrap(await account(owner).keepsSignIn(login))),
      welcomes: (owner, stay) => inTime(async () => unwrap(await account(owner).welcomesStill(stay))),
    },
  })
  const nextErrandMs = (): number | undefined => {
    const untoldMs = store.audit.isEmpty ? undefined : nowMs() + RETRY_MS
    const times = [cutting.nextMs(), untoldMs, store.audit.nextCountMs]
    const known = times.filter((time) => time !== undefined)
    return known.length === 0 ? undefined : Math.min(...known)
  }
  const life = new SandboxLife({
    store,
    provider,
    sandboxd,
    publicKey: signer.publicKey,
    settings: config,
    nowMs,
    log,
    refusals: new LateRefusals({
      store,
      log,
      tell: async (owner, sandbox, refusals) => {
        await trail.flush()
        await inTime(async () => unwrap(await account(owner).recordRefusals(owner, sandbox, refusals)))
      },
    }),
    index: {
      report: async (owner, view, sessions) => unwrap(await account(owner).report(view, sessions)),
      remove: async (owner, sandbox) => unwrap(await account(owner).remove(sandbox)),
      has: async (owner, sandbox) =>
        unwrap(await account(owner).sandboxes()).some(({ id }) => id === sandbox),
    },
    alarm: {
      set: (atMs) => wakeUp.by(atMs),
      // What is to be told, cut or ended in time needs it, running or not.
      clear: () => wakeUp.at(nextErrandMs()),
    },
    deleteAll: () => ctx.storage.deleteAll(),
  })
  const budget = new OutputBudget(config.limits.outputBytesPerSecond)
  const sessions = new SandboxSessions({ life, store, sandboxd, budget, nowMs, sleep })
  const sharing = new SandboxSharing({
    life,
    sessions,
    store,
    cutting,
    nowMs,
    ticketMs: config.ticketMs,
    holders: {
      tell: async (holder, held, arrival) => unwrap(await account(holder).addShared(held, arrival)),
      drop: async (holder, grant) => unwrap(await account(holder).dropShared(grant)),
    },
    random: (bytes) => crypto.getRandomValues(bytes),
  })
  const workspace = new WorkspaceProxy({
    life,
    sessions,
    store,
    requests,
    breakers: workspaceBreakers,
    nowMs,
    sleep,
    random: () => Math.random(),
    hold: (work) => ctx.waitUntil(work),
  })
  const ptySessions = new PtySessions({
    aliases: store.aliases,
    names: new SessionNames(sessionTokens, config.provider, nowMs),
    mintAlias: () => crypto.randomUUID(),
  })
  let isTelling = false
  const tellSoon = async (): Promise<void> => {
    if (isTelling) return
    isTelling = true
    await sleep(TELL_AFTER_MS)
    isTelling = false
    await trail.tell()
  }
  const trail: AuditTrail = new AuditTrail({
    store,
    nowMs,
    log,
    deliver: (owner, entries) => inTime(async () => unwrap(await account(owner).recordAudit(owner, entries))),
    wake: () => wakeUp.by(nowMs() + UNTOLD_MS),
    soon: () => ctx.waitUntil(tellSoon()),
    mintId: () => crypto.randomUUID(),
  })
  const rearm = async (): Promise<void> => {
    const nextMs = nextErrandMs()
    if (nextMs !== undefined) await wakeUp.by(Math.max(nextMs, nowMs() + MIN_PAUSE_MS))
  }
  return { life, provider, ptySessions, sessions, sharing, cutting, reauthorizing, trail, workspace, rearm }
}
