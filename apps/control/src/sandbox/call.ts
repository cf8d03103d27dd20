import type { Dialect, Role } from '@sandwire/protocol'

/** Who asks a sandbox's object for something; made by the worker after it checked the credential. */
export interface SandboxCall {
  readonly identity: string
  readonly requestId: string
}

/** An attach on its way to the sandbox. */
export interface AttachCall extends SandboxCall {
  /** Query for sandboxd, canonical. */
  readonly query: string
  /** The most it may be in the session; the query may ask for less. */
  readonly authority: Role
  readonly dialect: Dialect
  /** Id for the session that it starts; absent when it joins one, and then it wakes nothing. */
  readonly session?: string
  /** It can be sent twice without starting two processes. */
  readonly isIdempotent: boolean
}

/** Header in which an attach call travels inside the worker. Requests from outside never carry headers this far. */
export const CALL_HEADER = 'x-sandwire-call'
