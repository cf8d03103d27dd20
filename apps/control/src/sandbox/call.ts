import type { Dialect, Role } from '@sandwire/protocol'
import type { Action } from '../audit/actions.ts'
import type { Scope } from '../auth/identity.ts'
import type { PtySelection } from '../compat/pty-sessions.ts'

/** Who asks a sandbox's object for something; made by the worker after it checked the credential. */
export interface SandboxCall {
  /** Account that asks. */
  readonly identity: string
  /** What the people it shares with see of it. */
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Sign-in that its credential comes from. */
  readonly login?: string
  /** The very token, where `login` stands for others too. */
  readonly token?: string
  /** When its credential was issued, if it says so. */
  readonly issuedMs?: number
  /** When its credential ends; absent when it does not. */
  readonly expiresMs?: number
  /** Network address it comes from; empty when that is not known. */
  readonly address: string
  readonly requestId: string
  /** What the audit calls this; absent: it is not written down. */
  readonly action?: Action
  /** Command template that it uses. */
  readonly template?: string
}

/** An attach on its way to the sandbox. */
export interface AttachCall extends SandboxCall {
  /** Query for sandboxd, canonical. */
  readonly query: string
  readonly dialect: Dialect
  /** Session that it joins, and then it wakes nothing; absent when it starts one. */
  readonly joins?: string
  /** Id for the session that it starts. */
  readonly session?: string
  /** The most it may be, where its credential says less than its access. */
  readonly maxRole?: Role
  /** Environment that the template gives its process. */
  readonly env?: Readonly<Record<string, string>>
  /** Set for a `/ws/pty` client, whose messages sandboxd translates. */
  readonly compat?: PtySelection
  /** The session name reported to a compat client. */
  readonly sessionName?: string
  /** It can be sent twice without starting two processes. */
  readonly isIdempotent: boolean
}

/** Header in which an attach call travels inside the worker. Requests from outside never carry headers this far. */
export const CALL_HEADER = 'x-sandwire-call'
