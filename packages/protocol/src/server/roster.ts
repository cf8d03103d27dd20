import { MAX_ATTACHMENTS, PRESENCE_MS } from '../limits.ts'
import type { ServerMessage } from '../server-frames.ts'
import { type Attachment, roleWithoutLease } from './attachment.ts'
import type { LinkId } from './effects.ts'
import { Lease } from './lease.ts'
import type { Outbox } from './outbox.ts'

/** Identities remembered after they left; far more than connections can be under way. */
const MAX_RETIRED = 256

/** Who is attached, in which role, and who drives. */
export class Roster {
  readonly lease = new Lease()
  readonly #outbox: Outbox
  readonly #byIdentity = new Map<string, Attachment>()
  readonly #byLink = new Map<LinkId, Attachment>()
  /** Identities that have left on purpose, oldest first. */
  readonly #retired = new Set<string>()
  #minted = 0
  /** Counts what everybody is told of; attachments remember which state they know. */
  #version = 0
  /** The newest state as a message, once somebody was told. */
  #presence: ServerMessage | undefined

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  mintId(): string {
    this.#minted += 1
    return `a${this.#minted}`
  }

  get size(): number {
    return this.#byIdentity.size
  }

  get attachedCount(): number {
    return this.#byLink.size
  }

  /** Names of those who have a connection, each once. */
  get people(): readonly string[] {
    return [...new Set(Array.from(this.#byLink.values(), ({ name }) => name))]
  }

  all(): IterableIterator<Attachment> {
    return this.#byIdentity.values()
  }

  ofLink(link: LinkId): Attachment | undefined {
    return this.#byLink.get(link)
  }

  ofIdentity(identity: string): Attachment | undefined {
    return this.#byIdentity.get(identity)
  }

  ofId(id: string): Attachment | undefined {
    for (const attachment of this.#byIdentity.values()) if (attachment.id === id) return attachment
    return undefined
  }

  /** The driver, when it has a connection. */
  get driver(): Attachment | undefined {
    const { holder } = this.lease
    const attachment = holder === null ? undefined : this.ofId(holder)
    return attachment?.state.is === 'attached' ? attachment : undefined
  }

  add(attachment: Attachment): void {
    this.#byIdentity.set(attachment.identity, attachment)
    if (attachment.state.is === 'attached') this.#byLink.set(attachment.state.link, attachment)
  }

  /** Gives an attachment a new connection; the one it had, if any, is returned and no longer speaks for it. */
  relink(attachment: Attachment, link: LinkId): LinkId | undefined {
    const previous = attachment.state.is === 'attached' ? attachment.state.link : undefined
    if (previous !== undefined) this.#byLink.delete(previous)
    attachment.state = { is: 'attached', link }
    this.#byLink.set(link, attachment)
    if (this.lease.holder === attachment.id) this.lease.confirm()
    return previous
  }

  unlink(attachment: Attachment, nowMs: number, awaitedMs: number): void {
    if (attachment.state.is !== 'attached') return
    this.#byLink.delete(attachment.state.link)
    attachment.state = { is: 'detached', sinceMs: nowMs, awaitedMs }
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
    if (attachment.state.is === 'attached') this.#byLink.delete(attachment.state.link)
    this.#byIdentity.delete(attachment.identity)
    if (this.lease.holder === attachment.id) this.lease.free()
  }

  /** Moves the lease to `to`, who is not told; whoever had it watches, or types along where roles are not known, and is told where its input ended. */
  grantLease(to: Attachment): void {
    const previous = this.lease.holder === null ? undefined : this.ofId(this.lease.holder)
    this.lease.grant(to.id)
    to.role = 'driver'
    if (previous === undefined || previous === to) return
    previous.role = roleWithoutLease(previous)
    if (previous.state.is === 'attached') previous.deafUntilEpoch = this.lease.epoch
    this.tellRole(previous)
  }

  tellRole(attachment: Attachment): void {
    this.#outbox.tell(attachment, {
      type: 'role',
      role: attachment.role,
      epoch: this.lease.epoch,
      input: { at: attachment.inputAccepted, seq: attachment.controlSeq },
    })
  }

  /** Something that everybody is told of has changed. */
  announce(): void {
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
  tellPresence(attachment: Attachment, nowMs: number): void {
    const dueMs = this.presenceDueMs(attachment)
    if (dueMs === undefined || nowMs < dueMs) return
    attachment.presence = { told: this.#version, atMs: nowMs }
    this.#presence ??= this.#describe()
    this.#outbox.tell(attachment, this.#presence)
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
