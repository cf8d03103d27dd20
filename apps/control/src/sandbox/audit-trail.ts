import type { ErrorCode } from '@sandwire/protocol'
import type { Action } from '../audit/actions.ts'
import { Chatter } from '../audit/chatter.ts'
import { type AuditEntry, isRefusal } from '../audit/entry.ts'
import { isDiskFull, nameFault } from '../disk-full.ts'
import type { Log } from '../log.ts'
import { type AuditOutbox, DROPS_GATHER_MS } from './audit-outbox.ts'
import type { SandboxCall } from './call.ts'
import type { About } from './deeds.ts'
import type { SandboxRecord } from './record.ts'
import type { SandboxStore } from './store.ts'

/** What a row says beside who asked. */
export interface Deed {
  readonly action: Action
  readonly session?: string | undefined
  readonly grant?: string | undefined
  /** Name of the command. */
  readonly command?: string | undefined
  /** False: all was as it was asked for already, which is no deed. */
  readonly hasChanged?: boolean
}

/** The sandbox as it was before something was done to it. */
export interface Scene {
  readonly record: SandboxRecord
  /** Whether the caller had any right here: what strangers are refused is nobody's history. */
  readonly isKnown: boolean
}

export interface TrailDependencies {
  readonly store: SandboxStore
  /** Tells the owner's account; throws when it is not known to have arrived. */
  readonly deliver: (owner: string, entries: readonly AuditEntry[]) => Promise<void>
  /** Makes sure that the object's alarm rings soon, also after a crash. */
  readonly wake: () => Promise<void>
  /** Has the rows told, without anybody waiting for it. */
  readonly soon: () => void
  readonly log: Pick<Log, 'warn' | 'error'>
  readonly nowMs: () => number
  readonly mintId: () => string
}

/**
 * Writes what is done in a sandbox into its owner's audit: a row here first, in the same moment as the deed's own
 * changes, then a delivery that is repeated until it is known to have arrived. Rows have ids, so none counts twice.
 */
export class AuditTrail {
  readonly #deps: TrailDependencies
  readonly #chatter = new Chatter()
  #flushing: Promise<void> | undefined

  constructor(deps: TrailDependencies) {
    this.#deps = deps
  }

  /** Looks before something is done; undefined when there is no sandbox. */
  look({ identity }: Pick<SandboxCall, 'identity'>): Scene | undefined {
    const record = this.#deps.store.read()
    return record === undefined ? undefined : { record, isKnown: this.#isKnown(record, identity) }
  }

  /**
   * Does what somebody asked for and, when that has a name in the audit, writes down what came of it. What says that it is
   * done has its row from then on, whatever becomes of its caller or of the sandbox before there is an answer.
   */
  async watch<T>(
    call: SandboxCall,
    about: About<T>,
    run: (noteDone: () => Promise<void>) => T | Promise<T>,
  ): Promise<T> {
    const aboutOf = typeof about === 'function' ? about : (): Partial<Deed> => about
    const action = aboutOf(undefined).action ?? call.action
    const scene = this.look(call)
    if (scene === undefined || action === undefined) return run(() => Promise.resolve())
    let isDone = false
    const noteDone = async (): Promise<void> => {
      isDone = true
      await this.write(call, { ...aboutOf(undefined), action }, scene)
    }
    let code: ErrorCode | undefined
    let value: T | undefined
    try {
      value = await run(noteDone)
      return value
    } catch (caught) {
      code = nameFault(caught).code
      throw caught
    } finally {
      const deed = { ...aboutOf(value), action }
      const isToWrite = !isDone && (code !== undefined || deed.hasChanged !== false)
      if (isToWrite) await this.write(call, deed, scene, code)
    }
  }

  /** Tells all there is before the sandbox is forgotten: what is stored here ends with it, the owner's audit does not. */
  async sayLast(call: SandboxCall, scene: Scene | undefined): Promise<void> {
    if (scene !== undefined) await this.write(call, { action: 'sandbox.destroy' }, scene)
    this.#closeCounts(Number.MAX_SAFE_INTEGER)
    await this.flush()
  }

  /** Writes down what a call came to. Durable with whatever else the object writes before it answers. */
  async write(call: SandboxCall, deed: Deed, before: Scene, code?: ErrorCode): Promise<void> {
    const { store, nowMs, wake, soon, log } = this.#deps
    const { record } = before
    // Destroyed: its last row was written while there was a place to write it.
    if (store.read() === undefined) return
    if (!before.isKnown && !this.#isKnown(record, call.identity)) return
    // To somebody who holds something here, a sandbox that does not exist is one that they may not see.
    const isRefused = code !== undefined && (isRefusal(code) || code === 'sandbox_not_found')
    const entry: AuditEntry = {
      id: `${call.requestId}.${deed.action}`,
      atMs: nowMs(),
      actor: call.identity,
      actorName: call.name,
      action: deed.action,
      sandbox: record.id,
      sandboxName: record.name,
      address: call.address,
      outcome: isRefused ? 'refused' : 'allowed',
      requestId: call.requestId,
      ...(deed.session === undefined ? {} : { session: deed.session }),
      ...(deed.grant === undefined ? {} : { grant: deed.grant }),
      ...(deed.command === undefined ? {} : { command: deed.command }),
      ...(call.template === undefined ? {} : { template: call.template }),
      ...(call.login === undefined ? {} : { login: call.login }),
      ...(code === undefined ? {} : { code }),
    }
    const isOwner = call.identity === record.owner
    try {
      const isIn = this.#chatter.admits(entry, isOwner, nowMs()) && this.#outbox.add(entry, isOwner)
      if (!isIn) this.#outbox.countDrop(entry, nowMs())
      await wake()
    } catch (caught) {
      // Nobody could get in to make room if that needed room.
      if (!isDiskFull(caught)) throw caught
      log.error('audit_lost', { request_id: call.requestId, sandbox: record.id })
    }
    soon()
  }

  /** Tells the owner's account what waits, if that can be done now. */
  async tell(): Promise<void> {
    try {
      await this.flush()
    } catch (caught) {
      // The rows stay, and the alarm tries again.
      const { code, message } = nameFault(caught)
      this.#deps.log.warn('audit_delayed', { code, cause: message })
    }
  }

  /** Tells the owner's account everything that waits; throws when that cannot be done now. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined
    })
    return this.#flushing
  }

  async #flush(): Promise<void> {
    const { store, deliver, nowMs } = this.#deps
    this.#closeCounts(nowMs() - DROPS_GATHER_MS)
    for (let batch = this.#outbox.head(); batch !== undefined; batch = this.#outbox.head()) {
      const record = store.read()
      if (record === undefined) return
      await deliver(record.owner, batch.entries)
      this.#outbox.confirm(batch)
    }
  }

  #closeCounts(untilMs: number): void {
    const { store, nowMs, mintId } = this.#deps
    const record = store.read()
    if (record === undefined) return
    this.#outbox.closeCounts(untilMs, (drops) => {
      const unique = mintId()
      return {
        ...drops,
        id: `${unique}.audit.dropped`,
        atMs: nowMs(),
        action: 'audit.dropped',
        sandbox: record.id,
        sandboxName: record.name,
        address: '',
        outcome: 'allowed',
        requestId: unique,
      }
    })
  }

  get #outbox(): AuditOutbox {
    return this.#deps.store.audit
  }

  #isKnown({ owner }: SandboxRecord, account: string): boolean {
    const { store, nowMs } = this.#deps
    const holds = (): boolean => store.sharing.grantsOf(account).some(({ expiresMs }) => expiresMs > nowMs())
    return account === owner || holds()
  }
}
