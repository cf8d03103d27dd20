import { AckWindow } from '../ack-window.ts'
import type { Role } from '../client-frames.ts'
import { LEASE_MESSAGES_PER_SECOND } from '../limits.ts'
import { TokenBucket } from '../token-bucket.ts'
import type { ConnectionId } from './effects.ts'
import type { SessionLimits } from './session-options.ts'

/** The dialect that a connection speaks. */
export type Dialect = 'plain' | 'v1'

/**
 * Who acknowledges output. `client`: the client, within its window; input needs credit too. `connection`: output counts as
 * consumed once the connection has accepted it, and input is only bounded, for clients without windows.
 */
export type Acknowledgement = 'client' | 'connection'

export type AttachmentState =
  | { readonly kind: 'attached'; readonly connectionId: ConnectionId }
  /** `returnExpectedUntilMs`: the attachment is kept at least until then, even if the session's keep is shorter. */
  | { readonly kind: 'detached'; readonly sinceMs: number; readonly returnExpectedUntilMs: number }

/** What the attachment is being sent. `complete`: the exit was acknowledged, and the connection is being closed. */
export type OutputPhase = 'streaming' | 'awaitingSnapshot' | 'exitSent' | 'complete'

/** One client of the session, across its reconnects. */
export interface Attachment {
  /** Public name. */
  readonly id: string
  /** Secret that resumes it. */
  readonly identity: string
  /** Number of its newest connection, as the client counts them. */
  attempt: number
  /** Account that owns it; another one cannot resume it. */
  readonly principal: string
  readonly dialect: Dialect
  readonly acknowledgement: Acknowledgement
  /** When its connection was full, it gets a screen in place of the output since then. */
  readonly skipsBacklog: boolean
  /** Role while it may drive but does not hold the lease. */
  readonly roleWithoutLease: Role
  /** Sign-in and grant that authorize its newest connection. */
  login: string | undefined
  grant: string | undefined
  name: string
  /** A coding agent: gets no output while input is private, and no snapshot, which could show such output. */
  readonly isAgent: boolean
  /** The highest role it may have, from the connection's authorization. */
  authority: Role
  role: Role
  state: AttachmentState
  outputPhase: OutputPhase

  /** Where its raw stream begins: 0, the offset of its last snapshot, or infinity before its first one. */
  base: number
  /** Offset after the last output byte passed to the connection. */
  sent: number
  /** Highest value of `sent` so far; nothing beyond it can have been received. */
  sentMax: number
  /** Offset up to which the client has consumed the output. */
  acked: number
  /** When `acked` last moved or everything was acknowledged. */
  ackProgressMs: number
  window: AckWindow
  /** The connection's send buffer is full. */
  isBlocked: boolean
  /** Serial number of the last resize it was sent. */
  resizeSerial: number
  /** It made no ack progress for so long that it no longer pauses the process. */
  isStalled: boolean
  /** Set when output bandwidth is limited; all attachments of an account may share it. */
  bandwidth: TokenBucket | undefined
  /** Only the bandwidth limit delays its output now. */
  isThrottled: boolean
  /** Version of the last presence message it was sent, and when. */
  presence: { version: number; atMs: number }
  /** A ping to answer once the connection accepts more. */
  pendingPongId: number | undefined
  /** Limits how often it may take, give or ask for the lease. */
  readonly leaseMoves: TokenBucket

  /** Input bytes accepted, and how many of them the process has read. */
  inputAccepted: number
  inputSettled: number
  /** Sequence number of the last control message applied. */
  controlSeq: number
  /** Position in the last input ack. */
  inputAckSent: { at: number; seq: number }
  /** Offset from which output is withheld from it because input is private. */
  withheldFrom: number | undefined
  /** When an input ack is due. */
  inputAckDueMs: number | undefined
  /** Input is discarded until the client has seen the role change of this epoch. */
  ignoreInputUntilEpoch: number | undefined
  /** Offset at which the process stopped reading input. */
  stdinClosedAt: number | undefined
  isStdinClosedSent: boolean
}

/** The output budget where bandwidth is limited; up to a quarter of a second's worth may be sent at once. */
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
  acknowledgement: Acknowledgement
  skipsBacklog: boolean
  roleWithoutLease: Role
  login: string | undefined
  grant: string | undefined
  name: string
  isAgent: boolean
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
  const { limits, nowMs, connectionId, from, windowBytes, bandwidth, ...identity } = init
  return {
    ...identity,
    state: { kind: 'attached', connectionId },
    outputPhase: 'streaming',
    base: 0,
    sent: from,
    sentMax: from,
    acked: from,
    ackProgressMs: nowMs,
    window: new AckWindow(limits.window, windowBytes),
    isBlocked: false,
    isStalled: false,
    bandwidth: bandwidth ?? createBandwidth(limits, nowMs),
    isThrottled: false,
    presence: { version: 0, atMs: Number.NEGATIVE_INFINITY },
    pendingPongId: undefined,
    leaseMoves: new TokenBucket(LEASE_MESSAGES_PER_SECOND, LEASE_MESSAGES_PER_SECOND * 2, nowMs),
    inputAccepted: 0,
    inputSettled: 0,
    controlSeq: 0,
    inputAckSent: { at: 0, seq: 0 },
    withheldFrom: undefined,
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

export function canWrite(role: Role): boolean {
  return role !== 'viewer'
}
