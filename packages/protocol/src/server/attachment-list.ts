import { MAX_ATTACHMENTS, PRESENCE_MS } from '../limits.ts'
import type { ServerMessage } from '../server-frames.ts'
import { type Attachment, canWrite } from './attachment.ts'
import type { ConnectionId } from './effects.ts'
import { Lease } from './lease.ts'
import type { EffectBuffer } from './effect-buffer.ts'

/** Retired identities that are remembered; far more than hellos can be in flight. */
const MAX_RETIRED = 256

/** The attachments of a session and their lease. */
export class AttachmentList {
  readonly lease = new Lease()
  readonly #effects: EffectBuffer
  readonly #byIdentity = new Map<string, Attachment>()
  readonly #byConnection = new Map<ConnectionId, Attachment>()
  /** Identities that detached or were revoked, oldest first. */
  readonly #retired = new Set<string>()
  #minted = 0
  /** Attachment that began private input. */
  #privateBy: string | null = null
  /** Version of the presence state; attachments remember which one they were sent. */
  #version = 0
  /** The current presence message, once it was needed. */
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

  /** Distinct names of connected attachments. */
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

  /** The holder of the lease, if it is connected. */
  get driver(): Attachment | undefined {
    const { holder } = this.lease
    const attachment = holder === null ? undefined : this.byId(holder)
    return attachment?.state.kind === 'attached' ? attachment : undefined
  }

  add(attachment: Attachment): void {
    this.#byIdentity.set(attachment.identity, attachment)
    if (attachment.state.kind === 'attached')
      this.#byConnection.set(attachment.state.connectionId, attachment)
  }

  get isInputPrivate(): boolean {
    return this.#privateBy !== null
  }

  /** Begins or ends private input. Everyone who may write may do both, except for agents; others change nothing. */
  setPrivate(attachment: Attachment, isOn: boolean): void {
    if (isOn === this.isInputPrivate || attachment.isAgent) return
    if (!canWrite(attachment.role) && attachment.id !== this.#privateBy) return
    this.#privateBy = isOn ? attachment.id : null
    this.presenceChanged()
  }

  endPrivate(): void {
    if (this.isInputPrivate) this.presenceChanged()
    this.#privateBy = null
  }

  /** Assigns a new connection to an attachment; returns the previous one, if it had one. */
  reconnect(attachment: Attachment, connectionId: ConnectionId): ConnectionId | undefined {
    const previous = attachment.state.kind === 'attached' ? attachment.state.connectionId : undefined
    if (previous !== undefined) this.#byConnection.delete(previous)
    attachment.state = { kind: 'attached', connectionId }
    this.#byConnection.set(connectionId, attachment)
    if (this.lease.holder === attachment.id) this.lease.confirm()
    return previous
  }

  disconnect(attachment: Attachment, nowMs: number, returnExpectedUntilMs: number): void {
    if (attachment.state.kind !== 'attached') return
    this.#byConnection.delete(attachment.state.connectionId)
    attachment.state = { kind: 'detached', sinceMs: nowMs, returnExpectedUntilMs }
  }

  /** Forgets an attachment for good: a hello of it that is still in flight is refused. */
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
    if (attachment.state.kind === 'attached') this.#byConnection.delete(attachment.state.connectionId)
    this.#byIdentity.delete(attachment.identity)
    if (this.lease.holder === attachment.id) this.lease.free()
    if (this.#privateBy === attachment.id) this.endPrivate()
  }

  /** Grants the lease without notifying `to`. The previous holder loses its role and is sent the position where its input ended. */
  grantLease(to: Attachment): void {
    const previous = this.lease.holder === null ? undefined : this.byId(this.lease.holder)
    this.lease.grant(to.id)
    to.role = 'driver'
    if (previous === undefined || previous === to) return
    previous.role = previous.roleWithoutLease
    if (previous.state.kind === 'attached') previous.ignoreInputUntilEpoch = this.lease.epoch
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

  /** The presence state has changed; every attachment will be sent the new one. */
  presenceChanged(): void {
    this.#version += 1
    this.#presence = undefined
  }

  /** When an attachment is due a presence message; undefined when it has the current one or cannot receive it. */
  presenceDueMs(attachment: Attachment): number | undefined {
    const { presence, state, isBlocked } = attachment
    if (state.kind !== 'attached' || isBlocked || presence.version === this.#version) return undefined
    return presence.atMs + PRESENCE_MS
  }

  /** Sends the presence message to an attachment, if it is due. */
  sendPresence(attachment: Attachment, nowMs: number): void {
    const dueMs = this.presenceDueMs(attachment)
    if (dueMs === undefined || nowMs < dueMs) return
    attachment.presence = { version: this.#version, atMs: nowMs }
    this.#presence ??= this.#describe()
    this.#effects.send(attachment, this.#presence)
  }

  #describe(): ServerMessage {
    const { holder } = this.lease
    const listed = [...this.all()].filter(({ state, id }) => state.kind === 'attached' || id === holder)
    const attachments = listed.map(({ id, role, name, state, isAgent }) => ({
      id,
      role,
      name,
      connected: state.kind === 'attached',
      ...(isAgent ? { agent: true as const } : {}),
    }))
    return {
      type: 'presence',
      driver: holder,
      attachments: attachments.slice(0, MAX_ATTACHMENTS),
      private: this.#privateBy,
    }
  }
}
