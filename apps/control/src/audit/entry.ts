import { ERRORS, type ErrorCode } from '@sandwire/protocol'
import type { Action } from './actions.ts'

/** An audited request, as it is stored and sent to the owner's account. */
export interface AuditEntry {
  /** Derived from the request id, so that a row that is recorded or sent twice stays one. */
  readonly id: string
  readonly atMs: number
  /** Account that made the request; empty for the server itself. */
  readonly actor: string
  readonly actorName: string
  readonly action: Action
  readonly sandbox?: string
  readonly sandboxName?: string
  readonly session?: string
  /** Grant that was created, redeemed or revoked. */
  readonly grant?: string
  /** Account that the request affected, when it is another. */
  readonly account?: string
  /** Network address of the client; empty when not known. */
  readonly address: string
  /** Whether it was authorized; `code` has the error. */
  readonly outcome: 'allowed' | 'refused'
  /** Error code of the response. */
  readonly code?: ErrorCode
  /** Command template that was used. */
  readonly template?: string
  /** Name of the command without its folder and arguments. */
  readonly command?: string
  /** Sign-in that the credential belongs to. */
  readonly login?: string
  readonly requestId: string
  /** Number of dropped rows and the time of the first, for `audit.dropped`; `atMs` is the time of the last. */
  readonly dropped?: number
  readonly droppedSinceMs?: number
}

/** Longest text of a field; ids and names are shorter. */
const MAX_FIELD_CHARS = 256

/** Replaces control characters and line breaks, and limits the length. */
export function cleanField(text: string): string {
  return text.slice(0, MAX_FIELD_CHARS).replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
}

export function cleanEntry(entry: AuditEntry): AuditEntry {
  const cleaned = Object.entries(entry).map(([key, value]: [string, unknown]) => [
    key,
    typeof value === 'string' ? cleanField(value) : value,
  ])
  return Object.fromEntries(cleaned) as AuditEntry
}

/** True for errors that mean a refusal rather than a failure. */
export function isRefusal(code: ErrorCode): boolean {
  return [401, 403, 429].includes(ERRORS[code].status) || code === 'link_spent'
}

/** The name of a command for the audit. Its arguments and folder may be secrets. */
export function commandName(command: string): string {
  return cleanField(command.slice(command.lastIndexOf('/') + 1))
}
