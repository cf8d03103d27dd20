import type { Dialect, Role } from '@sandwire/protocol'
import type { Action } from '../audit/actions.ts'
import type { Scope } from '../auth/identity.ts'
import type { CompatCall } from '../compat/compat-call.ts'

/** The caller of a sandbox's object; built by the Worker after it authenticated the request. */
export interface SandboxCall {
  /** Account of the caller. */
  readonly identity: string
  /** Name that other users see. */
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Sign-in that the credential belongs to. */
  readonly login?: string
  /** The token itself, where `login` covers several tokens. */
  readonly token?: string
  /** When the credential was issued, if known. */
  readonly issuedMs?: number
  /** When the credential expires; absent: never. */
  readonly expiresMs?: number
  /** Network address of the client; empty when not known. */
  readonly address: string
  readonly requestId: string
  /** Audit action; absent: not audited. */
  readonly action?: Action
  /** Command template that is started. */
  readonly template?: string
}

/** An attach request. */
export interface AttachCall extends SandboxCall {
  /** Canonical query for sandboxd. */
  readonly query: string
  readonly dialect: Dialect
  /** Session to join, which never starts the sandbox; absent: a session is started. */
  readonly joins?: string
  /** Id of the session to start. */
  readonly session?: string
  /** Highest role that the credential allows, where that is less than the access. */
  readonly maxRole?: Role
  /** Name of the coding agent whose interface is started in place of the command. */
  readonly agentTui?: string
  /** Environment from the template. */
  readonly env?: Readonly<Record<string, string>>
  /** Set for a client whose messages sandboxd translates. */
  readonly compat?: CompatCall
  /** The session name reported to a compat client. */
  readonly sessionName?: string
  /** Repeating the request does not start a second process. */
  readonly isIdempotent: boolean
}

/** Header that carries a call from the Worker to an object. Headers of client requests never get there. */
export const CALL_HEADER = 'x-sandwire-call'
