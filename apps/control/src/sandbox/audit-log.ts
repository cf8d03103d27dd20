import type { ErrorCode } from '@sandwire/protocol'
import { type Action, classOf } from '../audit/actions.ts'
import { type AuditEntry, cleanEntry, isRefusal, commandName } from '../audit/entry.ts'
import { AuditSampling } from '../audit/sampling.ts'
import { isDiskFull, toSandwireError } from '../disk-full.ts'
import type { Log } from '../log.ts'
import { OutboxDelivery } from '../outbox/delivery.ts'
import type { OutboxPolicy } from '../outbox/policy.ts'
import type { AttachCall, SandboxCall } from './call.ts'
import type { SandboxRecord } from './record.ts'
import type { DroppedRows, SandboxStore } from './store.ts'

/** Entries that wait for the owner's account; further ones are dropped and counted. */
const MAX_PENDING = 1_000
/**
 * With this many waiting, an entry is dropped. Other actors leave room for the owner's entries, and all of them for entries that
 * are relevant to security.
 */
export const MAX_PENDING_OF = {
  activity: { others: 400, owner: 800 },
  security: { others: 900, owner: MAX_PENDING },
} as const
/** Actors whose entries are counted while the disk is full; entries of further ones are only logged. */
const MAX_UNSTORED_ACTORS = 256
/** Entries sent at once. */
export const BATCH_SIZE = 100
/** How long dropped entries are counted before the count is queued as an entry of its own. */
export const DROP_COUNT_MS = 60_000

/** Entries are sent in order and never given up. A full queue refuses them, and the audit counts them as dropped. */
export const AUDIT_OUTBOX: OutboxPolicy = {
  queue: 'audit',
  order: 'fifo',
  batchSize: BATCH_SIZE,
  // The object sends them itself right away; the alarm only takes over when that did not happen.
  initialDelayMs: 5_000,
  firstRetryMs: 5_000,
  maxRetryMs: 60_000,
  maxPending: MAX_PENDING,
  overflow: 'refuse',
  onDuplicate: 'keep',
}

/** The fields of an entry besides the caller. */
export interface AuditEvent {
  readonly action: Action
  readonly session?: string | undefined
  readonly grant?: string | undefined
  /** Name of the command. */
  readonly command?: string | undefined
  /** False: the request changed nothing, and has no entry unless it failed. */
  readonly hasChanged?: boolean
}

/** Details of an event: known beforehand, or derived from the result, which is undefined when there is none. */
export type EventDetails<T> = Partial<AuditEvent> | ((value: T | undefined) => Partial<AuditEvent>)

/** The name of a command, which is all that the audit has of it. */
export function commandOf({ cmd }: { readonly cmd?: string }): Pick<AuditEvent, 'command'> {
  return cmd === undefined ? {} : { command: commandName(cmd) }
}

export function attachEvent({ joins, session, query }: AttachCall): AuditEvent {
  if (joins !== undefined) return { action: 'session.join', session: joins }
  const cmd = new URLSearchParams(query).get('cmd') ?? undefined
  return { action: 'session.start', session, ...commandOf(cmd === undefined ? {} : { cmd }) }
}

function droppedRow({ actor, actorName, atMs }: AuditEntry): DroppedRows {
  return { actor, actorName, dropped: 1, sinceMs: atMs }
}

/** The sandbox before a request changed it. */
export interface AuditContext {
  readonly record: SandboxRecord
  /** The caller owned the sandbox or held a grant. Requests of others are not audited. */
  readonly hadAccess: boolean
}

export interface AuditLogDependencies {
  readonly store: SandboxStore
  /** Sends entries to the owner's account; rejects when they may not have arrived. */
  readonly send: (owner: string, entries: readonly AuditEntry[]) => Promise<void>
  /** Sets the object's alarm for this time or sooner; it survives a crash. */
  readonly wakeBy: (atMs: number) => Promise<void>
  /** Calls `deliver` soon, without anything waiting for it. */
  readonly deliverSoon: () => void
  readonly log: Pick<Log, 'warn' | 'error'>
  readonly nowMs: () => number
  readonly mintId: () => string
}

/** How long an entry may wait for its first attempt if the object dies right after writing it. A running sandbox's alarm fires sooner. */
const CRASH_DELAY_MS = 60_000

/**
 * Writes the audit of a sandbox: an entry is stored in the same turn as the change that it reports, then sent to the owner's
 * account until that confirms it. Entries have ids, so none is recorded twice.
 */
export class AuditLog {
  readonly #deps: AuditLogDependencies
  readonly #sampling = new AuditSampling()
  readonly #delivery: OutboxDelivery
  /** Counts of entries, by actor, that could not be stored because the disk is full. */
  readonly #unstored = new Map<string, DroppedRows>()

  constructor(deps: AuditLogDependencies) {
    this.#deps = deps
    this.#delivery = new OutboxDelivery({
      outbox: deps.store.auditOutbox,
      nowMs: deps.nowMs,
      wakeBy: deps.wakeBy,
      send: async (batch) => {
        const owner = deps.store.read()?.owner
        if (owner === undefined) return
        await deps.send(
          owner,
          batch.map(({ body }) => JSON.parse(body) as AuditEntry),
        )
      },
    })
  }

  /** To be called before a request changes anything; undefined when there is no sandbox. */
  contextOf({ identity }: Pick<SandboxCall, 'identity'>): AuditContext | undefined {
    const record = this.#deps.store.read()
    return record === undefined ? undefined : { record, hadAccess: this.#hasAccess(record, identity) }
  }

  /**
   * Runs a request and records its outcome, if it has an audit action. `recordDone` records success at once, whatever happens
   * to the caller or the sandbox before there is a response.
   */
  async audited<T>(
    call: SandboxCall,
    details: EventDetails<T>,
    run: (recordDone: () => Promise<void>) => T | Promise<T>,
  ): Promise<T> {
    const detailsOf = typeof details === 'function' ? details : (): Partial<AuditEvent> => details
    const action = detailsOf(undefined).action ?? call.action
    const context = this.contextOf(call)
    if (context === undefined || action === undefined) return run(() => Promise.resolve())
    let isRecorded = false
    const recordDone = async (): Promise<void> => {
      isRecorded = true
      await this.record(call, { ...detailsOf(undefined), action }, context)
    }
    let code: ErrorCode | undefined
    let value: T | undefined
    try {
      value = await run(recordDone)
      return value
    } catch (caught) {
      code = toSandwireError(caught).code
      throw caught
    } finally {
      const event = { ...detailsOf(value), action }
      const mustRecord = !isRecorded && (code !== undefined || event.hasChanged !== false)
      if (mustRecord) await this.record(call, event, context, code)
    }
  }

  /** Records the destruction and sends all entries; rejects if that fails. The storage of the sandbox is deleted afterwards. */
  async recordDestroyed(call: SandboxCall, context: AuditContext | undefined): Promise<void> {
    if (context !== undefined) await this.record(call, { action: 'sandbox.destroy' }, context)
    this.#queueDropCounts(Number.MAX_SAFE_INTEGER)
    await this.flush()
  }

  /** Stores an entry, durable together with the object's other writes before it responds. */
  async record(call: SandboxCall, event: AuditEvent, before: AuditContext, code?: ErrorCode): Promise<void> {
    const { store, nowMs, wakeBy, deliverSoon, log } = this.#deps
    const { record } = before
    // Destroyed: its last entry was sent before.
    if (store.read() === undefined) return
    if (!before.hadAccess && !this.#hasAccess(record, call.identity)) return
    // For the holder of a grant, `sandbox_not_found` means that the grant does not cover the request.
    const isRefused = code !== undefined && (isRefusal(code) || code === 'sandbox_not_found')
    const entry: AuditEntry = {
      id: `${call.requestId}.${event.action}`,
      atMs: nowMs(),
      actor: call.identity,
      actorName: call.name,
      action: event.action,
      sandbox: record.id,
      sandboxName: record.name,
      address: call.address,
      outcome: isRefused ? 'refused' : 'allowed',
      requestId: call.requestId,
      ...(event.session === undefined ? {} : { session: event.session }),
      ...(event.grant === undefined ? {} : { grant: event.grant }),
      ...(event.command === undefined ? {} : { command: event.command }),
      ...(call.template === undefined ? {} : { template: call.template }),
      ...(call.login === undefined ? {} : { login: call.login }),
      ...(code === undefined ? {} : { code }),
    }
    const isOwner = call.identity === record.owner
    try {
      this.#storeUnstored()
      const maxPending =
        MAX_PENDING_OF[classOf(event.action, code) === 'security' ? 'security' : 'activity'][
          isOwner ? 'owner' : 'others'
        ]
      const isQueued = this.#sampling.admits(entry, isOwner, nowMs()) && this.#enqueue(entry, maxPending)
      if (!isQueued) store.droppedAuditRows.add(droppedRow(entry))
      await wakeBy(nowMs() + CRASH_DELAY_MS)
    } catch (caught) {
      // Refusing the request would keep the owner from freeing space.
      if (!isDiskFull(caught)) throw caught
      this.#countUnstored(droppedRow(entry))
      log.error('audit_lost', { request_id: call.requestId, sandbox: record.id })
    }
    deliverSoon()
  }

  /** Counts events that were dropped elsewhere, if the caller has access. */
  async recordDropped(call: SandboxCall, dropped: Pick<DroppedRows, 'dropped' | 'sinceMs'>): Promise<void> {
    const { store, nowMs, wakeBy } = this.#deps
    if (this.contextOf(call)?.hadAccess !== true) return
    store.droppedAuditRows.add({ actor: call.identity, actorName: call.name, ...dropped })
    await wakeBy(nowMs() + CRASH_DELAY_MS)
  }

  #countUnstored(row: DroppedRows): void {
    const counted = this.#unstored.get(row.actor)
    if (counted === undefined && this.#unstored.size >= MAX_UNSTORED_ACTORS) return
    this.#unstored.set(
      row.actor,
      counted === undefined ? row : { ...counted, dropped: counted.dropped + row.dropped },
    )
  }

  /** Stores the counts of what could not be stored, now that there may be space. */
  #storeUnstored(): void {
    for (const row of this.#unstored.values()) {
      this.#deps.store.droppedAuditRows.add(row)
      this.#unstored.delete(row.actor)
    }
  }

  /** Sends the pending entries; failures are logged and retried by the alarm. */
  async deliver(): Promise<void> {
    try {
      await this.flush()
    } catch (caught) {
      const { code, message } = toSandwireError(caught)
      this.#deps.log.warn('audit_delayed', { code, cause: message })
    }
  }

  /** Sends the pending entries; rejects when that fails. */
  async flush(): Promise<void> {
    this.#queueDropCounts(this.#deps.nowMs() - DROP_COUNT_MS)
    const [error] = await this.#delivery.deliver({ force: true })
    if (error !== undefined) throw toSandwireError(error)
  }

  /** When the alarm must fire for this; undefined: never. */
  nextMs(): number | undefined {
    const { store, nowMs } = this.#deps
    const countedMs = store.droppedAuditRows.oldestMs
    const times = [
      store.auditOutbox.nextMs(nowMs()),
      countedMs === undefined ? undefined : countedMs + DROP_COUNT_MS,
    ].filter((time) => time !== undefined)
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Queues the counts of dropped entries that began by this time; they do not change any more. */
  #queueDropCounts(untilMs: number): void {
    const { store, nowMs, mintId } = this.#deps
    const record = store.read()
    if (record === undefined) return
    this.#storeUnstored()
    for (const { sinceMs, ...dropped } of store.droppedAuditRows.take(untilMs)) {
      const id = mintId()
      this.#enqueue(
        {
          ...dropped,
          droppedSinceMs: sinceMs,
          id: `${id}.audit.dropped`,
          atMs: nowMs(),
          action: 'audit.dropped',
          sandbox: record.id,
          sandboxName: record.name,
          address: '',
          outcome: 'allowed',
          requestId: id,
        },
        Number.POSITIVE_INFINITY,
      )
    }
  }

  #enqueue(entry: AuditEntry, maxPending: number): boolean {
    const { store, nowMs } = this.#deps
    const message = { destination: 'owner', key: entry.id, body: JSON.stringify(cleanEntry(entry)) }
    return store.auditOutbox.enqueue(message, nowMs(), maxPending)
  }

  #hasAccess({ owner }: SandboxRecord, account: string): boolean {
    const { store, nowMs } = this.#deps
    const holdsGrant = (): boolean =>
      store.sharing.grantsOf(account).some(({ expiresMs }) => expiresMs > nowMs())
    return account === owner || holdsGrant()
  }
}
