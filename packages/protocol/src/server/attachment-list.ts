import { MAX_ATTACHMENTS, PRESENCE_MS } from '../limits.ts'
import type { ServerMessage } from '../server-frames.ts'
import { type Attachment, roleWithoutLease } from './attachment.ts'
import type { ConnectionId } from './effects.ts'
import { Lease } from './lease.ts'
import type { EffectBuffer } from './effect-buffer.ts'

/** Identities remembered after they left; far more than connections can be under way. */
const MAX_RETIRED = 256

/** Who is attached, in which role, and who drives. */
export class AttachmentList {
  readonly lease = new Lease()
  readonly #effects: EffectBuffer
  readonly #byIdentity = new Map<string, Attachment>()
  readonly #byConnection = new Map<ConnectionId, Attachment>()
  /** Identities that have left on purpose, oldest first. */
  readonly #retired = new Set<string>()
  #minted = 0
  /** Counts what everybody is told of; attachments remember which state they know. */
  #version = 0
  /** The newest state as a message, once somebody was told. */
  #presence: ServerMessage | undefined

  constructor(effects: EffectBuffer) {
    this.#effects = effects
  }

  mintId(): string {
    this.#minted += 1
    return `a${this.#minted}`
  }

  get size(): number {
    return this.#byIdentity.size
  }

  get attachedCount(): number {
    return this.#byConnection.size
  }

  /** Names of those who have a connection, each once. */
  get people(): readonly string[] {
    return [...new Set(Array.from(this.#byConnection.values(), ({ name }) => name))]
  }

  all(): IterableIterator<Attachment> {
    return this.#byIdentity.values()
  }

  byConnection(connectionId: ConnectionId): Attachment | undefined {
    return this.#byConnection.get(connectionId)
  }

  byIdentity(identity: string): Attachment | undefined {
    return this.#byIdentity.get(identity)
  }

  byId(id: string): Attachment | undefined {
    for (const attachment of this.#byIdentity.values()) if (attachment.id === id) return attachment
    return undefined
  }

  /** The driver, when it has a connection. */
  get driver(): Attachment | undefined {
    const { holder } = this.lease
    const attachment = holder === null ? undefined : this.byId(holder)
    return attachment?.state.is === 'attached' ? attachment : undefined
  }

  add(attachment: Attachment): void {
    this.#byIdentity.set(attachment.identity, attachment)
    if (attachment.state.is === 'attached') this.#byConnection.set(attachment.state.connectionId, attachment)
  }

  /** Gives an attachment a new connection; the one it had, if any, is returned and no longer speaks for it. */
  reconnect(attachment: Attachment, connectionId: ConnectionId): ConnectionId | undefined {
    const previous = attachment.state.is === 'attached' ? attachment.state.connectionId : undefined
    if (previous !== undefined) this.#byConnection.delete(previous)
    attachment.state = { is: 'attached', connectionId }
    this.#byConnection.set(connectionId, attachment)
    if (this.lease.holder === attachment.id) this.lease.confirm()
    return previous
  }

  disconnect(attachment: Attachment, nowMs: number, returnExpectedUntilMs: number): void {
    if (attachment.state.is !== 'attached') return
    this.#byConnection.delete(attachment.state.connectionId)
    attachment.state = { is: 'detached', sinceMs: nowMs, returnExpectedUntilMs }
  }

  /** Forgets an attachment that left on purpose; a hello of it that is still under way must not bring it back. */
  retire(attachment: Attachment): void {
    this.forget(attachment)
    this.#retired.add(attachment.identity)
    for (const oldest of this.#retired) {
      if (this.#retired.size <= MAX_RETIRED) break
      this.#retired.delete(oldest)
    }
  }

  isRetired(identity: string): boolean {
    return this.#retired.has(identity)
  }

  forget(attachment: Attachment): void {
    if (attachment.state.is === 'attached') this.#byConnection.delete(attachment.state.connectionId)
    this.#byIdentity.delete(attachment.identity)
    if (this.lease.holder === attachment.id) this.lease.free()
  }

  /** Moves the lease to `to`, who is not told; whoever had it watches, or types along where roles are not known, and is told where its input ended. */
  grantLease(to: Attachment): void {
    const previous = this.lease.holder === null ? undefined : this.byId(this.lease.holder)
    this.lease.grant(to.id)
    to.role = 'driver'
    if (previous === undefined || previous === to) return
    previous.role = roleWithoutLease(previous)
    if (previous.state.is === 'attached') previous.ignoreInputUntilEpoch = this.lease.epoch
    this.sendRole(previous)
  }

  sendRole(attachment: Attachment): void {
    this.#effects.send(attachment, {
      type: 'role',
      role: attachment.role,
      epoch: this.lease.epoch,
      input: { at: attachment.inputAccepted, seq: attachment.controlSeq },
    })
  }

  /** Something that everybody is told of has changed. */
  presenceChanged(): void {
    this.#version += 1
    this.#presence = undefined
  }

  /** When an attachment is to be told who is there; undefined when it knows, or cannot be told. */
  presenceDueMs(attachment: Attachment): number | undefined {
    const { presence, state, isBlocked } = attachment
    if (state.is !== 'attached' || isBlocked || presence.told === this.#version) return undefined
    return presence.atMs + PRESENCE_MS
  }

  /** Tells an attachment who is there, if that is due. */
  sendPresence(attachment: Attachment, nowMs: number): void {
    const dueMs = this.presenceDueMs(attachment)
    if (dueMs === undefined || nowMs < dueMs) return
    attachment.presence = { told: this.#version, atMs: nowMs }
    this.#presence ??= this.#describe()
    this.#effects.send(attachment, this.#presence)
  }

  #describe(): ServerMessage {
    const { holder } = this.lease
    const shown = [...this.all()].filter(({ state, id }) => state.is === 'attached' || id === holder)
    const attachments = shown.map(({ id, role, name, state }) => ({
      id,
      role,
      name,
      connected: state.is === 'attached',
    }))
    return { type: 'presence', driver: holder, attachments: attachments.slice(0, MAX_ATTACHMENTS) }
  }
}
