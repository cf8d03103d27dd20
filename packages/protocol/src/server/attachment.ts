import { AckWindow } from '../ack-window.ts'
import type { Role } from '../client-frames.ts'
import { LEASE_MOVES_PER_SECOND } from '../limits.ts'
import { TokenBucket } from '../token-bucket.ts'
import type { ConnectionId } from './effects.ts'
import type { SessionLimits } from './session-options.ts'

/** Which conversation a connection speaks. */
export type Dialect = 'plain' | 'v1'

/** Whether an attachment has a connection now. */
export type ConnectionState =
  | { readonly is: 'attached'; readonly connectionId: ConnectionId }
  /** `awaitedMs`: until then it is waited for even if the session is kept for less. */
  | { readonly is: 'detached'; readonly sinceMs: number; readonly returnExpectedUntilMs: number }

/** One client of the session, across its reconnects. */
export interface Attachment {
  /** Name that others may see. */
  readonly id: string
  /** Secret that resumes it. */
  readonly identity: string
  /** Number of its newest connection, as the client counts them. */
  attempt: number
  /** Whose it is; another principal cannot resume it. */
  readonly principal: string
  readonly dialect: Dialect
  /** Its client knows no offsets and no roles: a translator speaks for it. */
  readonly isRelayed: boolean
  /** What its right to be here hangs on, as its newest connection says. */
  login: string | undefined
  grant: string | undefined
  name: string
  /** The most it may become, from the connection's authorization. */
  authority: Role
  role: Role
  state: ConnectionState

  /** Where its raw stream begins: 0, the offset of the last screen it was sent, or infinity while it has not got one. */
  base: number
  /** Offset behind the last output byte handed to the connection. */
  sent: number
  /** Highest `sent` ever; nothing beyond it can have been received. */
  sentMax: number
  /** Offset the client has consumed up to. */
  acked: number
  /** When `acked` last moved or everything was acknowledged. */
  ackProgressMs: number
  window: AckWindow
  /** The connection's own buffer is full until it drains. */
  isBlocked: boolean
  /** Waits for a rendered screen; no output is sent meanwhile. */
  awaitsSnapshot: boolean
  /** Serial number of the last resize it was told. */
  resizeSerial: number
  isExitSent: boolean
  /** Everything was said and consumed, and the connection was told to close. */
  isDone: boolean
  /** No ack progress for so long that it no longer holds the program back. */
  isStalled: boolean
  /** Present when output bandwidth is limited; it may be one for all attachments of somebody. */
  bandwidth: TokenBucket | undefined
  /** Nothing but that keeps output from it now. */
  isThrottled: boolean
  /** Which state of the roster it was told last, and when. */
  presence: { told: number; atMs: number }
  /** A ping to answer once the connection takes more. */
  pendingPongId: number | undefined
  /** How often it may still take, give or ask for the lease. */
  readonly leaseMoves: TokenBucket

  /** Input bytes accepted, and how many of them reached the process. */
  inputAccepted: number
  inputSettled: number
  /** Sequence number of the last control message applied. */
  controlSeq: number
  /** What the last input ack said. */
  inputAckSent: { at: number; seq: number }
  /** An input ack is due at this time. */
  inputAckDueMs: number | undefined
  /** Input is discarded until the client has seen the role change of this epoch. */
  ignoreInputUntilEpoch: number | undefined
  /** Where reading ended, once nobody reads input any more. */
  stdinClosedAt: number | undefined
  isStdinClosedSent: boolean
}

/** The budget of output where it is limited: a quarter of a second's may come at once. */
export function createBandwidth(
  { outputBytesPerSecond: rate }: Pick<SessionLimits, 'outputBytesPerSecond'>,
  nowMs: number,
): TokenBucket | undefined {
  return rate > 0 ? new TokenBucket(rate, Math.max(rate / 4, 1), nowMs) : undefined
}

export function createAttachment(init: {
  id: string
  identity: string
  attempt: number
  principal: string
  dialect: Dialect
  isRelayed: boolean
  login: string | undefined
  grant: string | undefined
  name: string
  authority: Role
  role: Role
  connectionId: ConnectionId
  from: number
  resizeSerial: number
  windowBytes: number
  bandwidth: TokenBucket | undefined
  limits: SessionLimits
  nowMs: number
}): Attachment {
  const { limits, nowMs } = init
  return {
    id: init.id,
    identity: init.identity,
    attempt: init.attempt,
    principal: init.principal,
    dialect: init.dialect,
    isRelayed: init.isRelayed,
    login: init.login,
    grant: init.grant,
    name: init.name,
    authority: init.authority,
    role: init.role,
    state: { is: 'attached', connectionId: init.connectionId },
    base: 0,
    sent: init.from,
    sentMax: init.from,
    acked: init.from,
    ackProgressMs: nowMs,
    window: new AckWindow(limits.window, init.windowBytes),
    isBlocked: false,
    awaitsSnapshot: false,
    resizeSerial: init.resizeSerial,
    isExitSent: false,
    isDone: false,
    isStalled: false,
    bandwidth: init.bandwidth ?? createBandwidth(limits, nowMs),
    isThrottled: false,
    presence: { told: 0, atMs: Number.NEGATIVE_INFINITY },
    pendingPongId: undefined,
    leaseMoves: new TokenBucket(LEASE_MOVES_PER_SECOND, LEASE_MOVES_PER_SECOND * 2, nowMs),
    inputAccepted: 0,
    inputSettled: 0,
    controlSeq: 0,
    inputAckSent: { at: 0, seq: 0 },
    inputAckDueMs: undefined,
    ignoreInputUntilEpoch: undefined,
    stdinClosedAt: undefined,
    isStdinClosedSent: false,
  }
}

const RANK: Readonly<Record<Role, number>> = { viewer: 0, collaborator: 1, driver: 2 }

/** The lesser of two roles. */
export function lesserRole(a: Role, b: Role): Role {
  return RANK[a] <= RANK[b] ? a : b
}

/** What it is without the lease, though it may drive. Those who know no roles type together. */
export function roleWithoutLease({ isRelayed }: Pick<Attachment, 'isRelayed'>): Role {
  return isRelayed ? 'collaborator' : 'viewer'
}

/** Whether it is sent whatever its connection takes, and sends whatever it likes: its client knows no windows. */
export function knowsNoWindow({
  dialect,
  isRelayed = false,
}: {
  readonly dialect: Dialect
  readonly isRelayed?: boolean
}): boolean {
  return dialect === 'plain' || isRelayed
}

export function canWrite(role: Role): boolean {
  return role !== 'viewer'
}
