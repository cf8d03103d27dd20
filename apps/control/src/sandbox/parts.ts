import { withTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import { MAX_DESTROYED_LOG_BYTES } from '../account/destroyed-logs.ts'
import { CompatSessions } from '../compat/compat-sessions.ts'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import type { Provider } from '../providers/provider.ts'
import { runtimeOf } from '../runtime.ts'
import { WorkspaceProxy } from '../workspace-proxy/proxy.ts'
import { type Authorization, ProxiedRequests } from '../workspace-proxy/requests.ts'
import { ObjectAlarm } from './alarm.ts'
import { Garbage } from '../versions/garbage.ts'
import { SandboxVersions } from '../versions/sandbox-versions.ts'
import { SandboxAgents } from './agents.ts'
import { AuditLog } from './audit-log.ts'
import { HolderIndex } from './holder-index.ts'
import { FileVersions } from './file-versions.ts'
import { LateRefusals } from './late-refusals.ts'
import { SandboxLifecycle } from './lifecycle.ts'
import { OutputBudget } from './output-budget.ts'
import { RecheckAuthorization } from './recheck-authorization.ts'
import { Revocation } from './revocation.ts'
import { SandboxdClient } from './sandboxd-client.ts'
import { SessionNames } from './session-names.ts'
import { SandboxSessions } from './sessions.ts'
import { SandboxSharing } from './sharing.ts'
import { isAtRest } from './state.ts'
import { conversationPins } from './session-view.ts'
import { StatusEvents, statusOf } from './status-events.ts'
import { openStatusStream } from './status-stream.ts'
import type { SandboxStore } from './store.ts'

/** The mechanisms of a sandbox's object. */
export interface SandboxParts {
  readonly lifecycle: SandboxLifecycle
  readonly sessions: SandboxSessions
  readonly sharing: SandboxSharing
  /** Requests of runs. */
  readonly agents: SandboxAgents
  readonly revocation: Revocation
  readonly recheck: RecheckAuthorization
  readonly audit: AuditLog
  readonly holders: HolderIndex
  readonly provider: Provider
  /** Finds or starts the sessions of compat clients. */
  readonly compatSessions: CompatSessions
  readonly workspace: WorkspaceProxy
  readonly files: FileVersions
  /** Reads which versions the account keeps. */
  readonly refreshRetention: () => Promise<void>
  /** Deletes stored files that nothing needs, when that is due. */
  readonly collectGarbage: () => Promise<void>
  /** Opens a stream of events about its files. */
  readonly openStatus: (authorization: Authorization) => ReadableStream<Uint8Array>
  /** Sets the alarm for what is pending beside the lifecycle. */
  readonly rearm: () => Promise<void>
}

/** How long audit entries gather before they are sent: each delivery costs the account a write. */
const AUDIT_DELAY_MS = 250
/** How long an object lives on whose container cannot be started, so that the caller gets a response. */
const ABORT_DELAY_MS = 250
/** Between two alarms at least. */
const MIN_ALARM_PAUSE_MS = 250
/** A change of the account's retention reaches running sandboxes after this time at the latest. */
const RETENTION_FRESH_MS = 10 * 60 * 1000
/** How long an account may take to respond. */
const ACCOUNT_MS = 10_000

export async function openParts(
  ctx: DurableObjectState,
  env: Env,
  store: SandboxStore,
): Promise<SandboxParts> {
  const {
    config,
    ceilings,
    log,
    nowMs,
    sleep,
    keys,
    providerOf,
    workspaceBreakers,
    sandboxdMetrics,
    versionMetrics,
    segments,
  } = runtimeOf(env)
  const { signer, sessionTokens } = await keys()
  const alarm = new ObjectAlarm(ctx.storage)
  const hold = (work: Promise<unknown>): void => ctx.waitUntil(work)
  const mintId = (): string => crypto.randomUUID()
  const sandboxObject = (id: string) => env.SANDBOX.get(env.SANDBOX.idFromName(id))
  const account = (owner: string) => env.ACCOUNT.get(env.ACCOUNT.idFromName(owner))
  const inTime = <T>(request: () => Promise<T>): Promise<T> =>
    withTimeout(request(), ACCOUNT_MS, () => new Error('The account does not respond'))

  const provider = providerOf({
    container: ctx.container,
    store: store.container,
    execs: store.execs,
    sandbox: () => store.read()?.id ?? '',
    wakeBy: (atMs) => hold(alarm.setBy(atMs)),
    savesFiles: segments !== undefined,
    hasInternet: env.OUTSIDE === undefined,
    egressFor: (network) => ctx.exports.Egress({ props: { sandbox: store.read()?.id ?? '', network } }),
    hold,
    // The alarm finds out what happened and reports it.
    onLost: () => hold(alarm.setBy(nowMs())),
    // A new object gets a new connection to the container engine.
    onStuck: () => hold(sleep(ABORT_DELAY_MS).then(() => ctx.abort('The container cannot be started'))),
  })
  const sandboxd = (sandbox: string): SandboxdClient =>
    new SandboxdClient({ sandbox, provider, signer, nowMs })

  const requests = new ProxiedRequests()
  const revocation = new Revocation({
    store,
    provider,
    sandboxd,
    requests,
    nowMs,
    sleep,
    log,
    mintRequestId: mintId,
    wakeBy: (atMs) => alarm.setBy(atMs),
  })
  const recheck = new RecheckAuthorization({
    store,
    revocation,
    nowMs,
    log,
    pollMs: config.alarmMs,
    credentials: {
      hasSignIn: (owner, login) => inTime(async () => unwrap(await account(owner).hasSignIn(login))),
      accepts: (owner, connection) =>
        inTime(async () => unwrap(await account(owner).acceptsConnection(connection))),
    },
  })

  let isDeliveryScheduled = false
  const deliverAuditSoon = async (): Promise<void> => {
    if (isDeliveryScheduled) return
    isDeliveryScheduled = true
    await sleep(AUDIT_DELAY_MS)
    isDeliveryScheduled = false
    await audit.deliver()
  }
  const audit: AuditLog = new AuditLog({
    store,
    nowMs,
    log,
    send: (owner, entries) => inTime(async () => unwrap(await account(owner).recordAudit(owner, entries))),
    wakeBy: (atMs) => alarm.setBy(atMs),
    deliverSoon: () => hold(deliverAuditSoon()),
    mintId,
  })

  const holders = new HolderIndex({
    store,
    nowMs,
    log,
    wakeBy: (atMs) => alarm.setBy(atMs),
    add: async (holder, held, source) => unwrap(await account(holder).addHeldGrant(held, source)),
    remove: (holder, grant) => inTime(async () => unwrap(await account(holder).removeHeldGrant(grant))),
  })

  /** When the alarm must fire for what does not depend on the lifecycle. */
  const nextMs = (): number | undefined => {
    const times = [
      revocation.nextMs(),
      audit.nextMs(),
      holders.nextMs(),
      garbage.nextMs(),
      provider.execSessions?.nextMs(),
    ].filter((time) => time !== undefined)
    return times.length === 0 ? undefined : Math.min(...times)
  }
  const rearm = async (): Promise<void> => {
    const next = nextMs()
    if (next !== undefined) await alarm.setBy(Math.max(next, nowMs() + MIN_ALARM_PAUSE_MS))
  }

  /** The last save did not fit below the account's ceiling. */
  let isFull = false
  const admitStored = async (bytes: number): Promise<void> => {
    const record = store.read()
    if (record === undefined || (ceilings.account.storedBytes ?? null) === null) return
    isFull = false
    try {
      await inTime(async () => unwrap(await account(record.owner).admitStored(record.id, bytes)))
    } catch (error) {
      isFull = SandwireError.from(error).code === 'ceiling_exceeded'
      throw error
    }
  }
  const events = new StatusEvents()
  const conversation = (id: string) => env.CONVERSATION.get(env.CONVERSATION.idFromName(id))
  events.subscribe((event) => {
    // Only for people to see, so that a failure changes nothing.
    for (const id of conversationPins(store.pins()))
      hold(
        conversation(id)
          .sandboxStatus(statusOf(event))
          .catch(() => undefined),
      )
  })
  const files: FileVersions = new FileVersions({
    store: store.versions,
    versions:
      segments === undefined
        ? undefined
        : new SandboxVersions({
            store: store.versions,
            segments,
            admit: admitStored,
            sandboxd,
            nowMs,
            sleep,
            randomHex: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)).toHex(),
          }),
    losesFiles: provider.survives.stop === 'nothing',
    provider: config.provider,
    events,
    metrics: versionMetrics,
    sandboxd,
    running: () => {
      const record = store.read()
      return record?.state.kind === 'running' ? { sandbox: record.id, state: record.state } : undefined
    },
    nowMs,
    sleep,
    log,
    mintRequestId: mintId,
    hold,
    onChange: () => lifecycle.publish(),
  })
  const garbage: Garbage = new Garbage({
    store: store.versions,
    segments,
    sandbox: () => store.read()?.id ?? store.versions.destroyedSandbox,
    isSaving: () => files.isSaving,
    isFull: () => isFull,
    needsSegments: (fork) => inTime(async () => unwrap(await sandboxObject(fork).needsForeignSegments(fork))),
    nowMs,
    log,
  })
  let retentionMs = 0
  /** Takes over the account's settings, unless that was done within this time. Failures are left for the next call. */
  const refreshRetention = async (freshMs = 0): Promise<void> => {
    const record = store.read()
    if (record === undefined || segments === undefined || nowMs() < retentionMs + freshMs) return
    retentionMs = nowMs()
    try {
      const settings = await inTime(async () => unwrap(await account(record.owner).retention()))
      store.versions.setRetention('account', settings)
    } catch (error) {
      log.warn('retention_not_read', { sandbox: record.id, cause: String(error) })
    }
  }
  /** Deletes the storage, and keeps what forks of the sandbox need. */
  const deleteAll = async (sandbox: string): Promise<void> => {
    const kept = store.versions.forkedContent(sandbox)
    await ctx.storage.deleteAll()
    store.reset()
    if (kept !== undefined) store.keepForForks(kept, nowMs())
  }
  const lifecycle: SandboxLifecycle = new SandboxLifecycle({
    store,
    provider,
    files,
    sandboxd,
    publicKey: signer.publicKey,
    settings: config,
    ceilings,
    nowMs,
    log,
    sandboxdMetrics,
    refusals: new LateRefusals({
      store,
      log,
      report: async (owner, sandbox, refusals) => {
        await audit.flush()
        await inTime(async () => unwrap(await account(owner).recordRefusals(owner, sandbox, refusals)))
      },
    }),
    index: {
      report: async (owner, view, sessions) => {
        const stored = segments === undefined ? undefined : store.versions.storedByLineage
        unwrap(await account(owner).report(view, sessions, stored))
      },
      reserve: async (owner, view) => unwrap(await account(owner).reserveStart(view)),
      admitSession: async (owner, session) => unwrap(await account(owner).admitSession(session)),
      remove: async (owner, sandbox) => unwrap(await account(owner).remove(sandbox)),
      has: async (owner, sandbox) =>
        unwrap(await account(owner).sandboxes()).some(({ id }) => id === sandbox),
    },
    alarm: {
      set: (atMs) => alarm.setBy(atMs),
      // Revocations and audit entries need it even when the sandbox is stopped.
      clear: () => alarm.setAt(nextMs()),
    },
    onDestroyed: async (by, requestId) => {
      await holders.removeAll()
      await audit.recordDestroyed({ ...by, scopes: [], requestId }, audit.contextOf(by))
    },
    keepLog: async (sandbox, requestId) => {
      const record = store.read()
      if (record === undefined) return
      try {
        const lines = await provider.logs(sandbox, MAX_DESTROYED_LOG_BYTES, requestId)
        const kept = { sandbox, name: record.name, log: lines.slice(-MAX_DESTROYED_LOG_BYTES) }
        await inTime(async () => unwrap(await account(record.owner).keepLog(kept)))
      } catch (error) {
        log.warn('log_not_kept', { sandbox, request_id: requestId, cause: String(error) })
      }
    },
    deleteSegments: (sandbox) => garbage.deleteAll(sandbox),
    deleteAll,
  })
  const budget = new OutputBudget(config.limits.outputBytesPerSecond)
  const sessions = new SandboxSessions({
    lifecycle,
    store,
    execSessions: provider.execSessions,
    sandboxd,
    budget,
    timeouts: config.sessions,
    nowMs,
    sleep,
  })
  const sharing = new SandboxSharing({
    lifecycle,
    sessions,
    checkRun: async (run) => unwrap(await env.CLAUDE_SANDBOX.get(env.CLAUDE_SANDBOX.idFromName(run)).check()),
    checkConversation: async (id) => unwrap(await conversation(id).check()),
    store,
    revocation,
    nowMs,
    ticketMs: config.ticketMs,
    holders,
    random: (bytes) => crypto.getRandomValues(bytes),
  })
  const workspace = new WorkspaceProxy({
    lifecycle,
    sessions,
    store,
    requests,
    breakers: workspaceBreakers,
    nowMs,
    sleep,
    random: () => Math.random(),
    hold,
  })
  const compatSessions = new CompatSessions({
    aliases: store.aliases,
    names: new SessionNames(sessionTokens, nowMs),
    mintAlias: mintId,
  })
  const openStatus = (authorization: Authorization): ReadableStream<Uint8Array> =>
    openStatusStream({
      events,
      first: files.events,
      request: requests.open(authorization),
      isActive: () => {
        const state = store.read()?.state
        return state !== undefined && !isAtRest(state)
      },
      hold,
    })
  return {
    lifecycle,
    openStatus,
    sessions,
    sharing,
    agents: new SandboxAgents({
      sessions,
      store,
      nowMs,
      releaseVersions: async (run) => {
        files.release(run)
        await rearm()
      },
    }),
    revocation,
    recheck,
    audit,
    holders,
    provider,
    compatSessions,
    workspace,
    files,
    refreshRetention,
    collectGarbage: async () => {
      await refreshRetention(RETENTION_FRESH_MS)
      const deleted = await garbage.onAlarm()
      if (deleted > 0 && store.read() !== undefined) await lifecycle.publish()
      const { destroyedSandbox, isEmpty } = store.versions
      if (destroyedSandbox !== undefined && isEmpty) await deleteAll(destroyedSandbox)
    },
    rearm,
  }
}
