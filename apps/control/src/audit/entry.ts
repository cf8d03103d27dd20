import { ERRORS, type ErrorCode } from '@sandwire/protocol'
import type { Action } from './actions.ts'

/** One thing that somebody did or was refused, as it is stored and sent to the owner's account. */
export interface AuditEntry {
  /** Made of the request's id, so that a row that is written or sent twice stays one. */
  readonly id: string
  readonly atMs: number
  /** Account that did it; empty when it was the server itself. */
  readonly actor: string
  readonly actorName: string
  readonly action: Action
  readonly sandbox?: string
  readonly sandboxName?: string
  readonly session?: string
  /** Grant that was made, taken or taken back. */
  readonly grant?: string
  /** Account that it was done to, where that is another. */
  readonly account?: string
  /** Network address it came from; empty when that is not known. */
  readonly address: string
  /** Whether it was let; what came of it is in `code`. */
  readonly outcome: 'allowed' | 'refused'
  /** The error it ended with. */
  readonly code?: ErrorCode
  /** Command template that was used. */
  readonly template?: string
  /** Name of the command without its folder and arguments. */
  readonly command?: string
  /** Sign-in that the credential comes from. */
  readonly login?: string
  readonly requestId: string
  /** Rows that were left out, for `audit.dropped`. */
  readonly dropped?: number
}

/** Longest text in a field: ids and names are shorter. */
const MAX_FIELD_CHARS = 256

/** A text without anything that could pass for the end of a row or move a cursor, and not endless. */
export function cleanField(text: string): string {
  return text.slice(0, MAX_FIELD_CHARS).replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
}

/** The entry with every text cleaned. */
export function cleanEntry(entry: AuditEntry): AuditEntry {
  const cleaned = Object.entries(entry).map(([key, value]: [string, unknown]) => [
    key,
    typeof value === 'string' ? cleanField(value) : value,
  ])
  return Object.fromEntries(cleaned) as AuditEntry
}

/** Whether an error says that somebody was not let, rather than that it did not work. */
export function isRefusal(code: ErrorCode): boolean {
  return [401, 403, 429].includes(ERRORS[code].status) || code === 'link_spent'
}

/** The name of a command as the audit has it: its arguments and its folder may be secrets. */
export function commandName(command: string): string {
  return cleanField(command.slice(command.lastIndexOf('/') + 1))
}
