import type { AgentTui, AUTHORITIES } from '@sandwire/internal-api'
import type { Role } from '@sandwire/protocol'

/** What a request is authorized as: a holder of the secret, control itself, or a user in a role. */
export type CallerAuthority = 'bearer' | (typeof AUTHORITIES)[number]

/** Who makes a request, according to its credential. */
export interface Caller {
  /** Owner of create ids and attachments. */
  readonly identity: string
  /** Shown to other attachments, in place of the name in the client's hello. */
  readonly name: string | undefined
  readonly authority: CallerAuthority
  /** Role in a session that it joins for the first time without naming one. */
  readonly usualRole?: Role
  /** Highest role in sessions that run a template of the operator, when that is higher. */
  readonly templateRole?: Role
  /** Sign-in and grant that authorize it; revoking either closes its attachments. */
  readonly login?: string
  readonly grant?: string
  /** When its connections must be authorized again, in milliseconds since the epoch. */
  readonly reauthorizeMs?: number
  /** May start any command and set any environment. */
  readonly exec: boolean
  /** May start the command of its request, which control made from a template. */
  readonly starts?: boolean
  /** Environment of the process it starts; overrides the hello's. */
  readonly env?: Readonly<Record<string, string>>
  /** A coding agent whose own interface the session that it creates runs in place of its command. */
  readonly agentTui?: AgentTui
  /** The run of a coding agent that acts, and not an account. */
  readonly agentRun?: string
  /** Id of the session that the request creates. */
  readonly session: string | undefined
  /** The session's name for compat clients; undefined: its id. */
  readonly sessionName?: string
  /** Id that control gave the request; undefined when sandboxd mints one. */
  readonly requestId: string | undefined
}

/** Any caller with the secret, and any caller where none is required. */
export const BEARER: Caller = {
  identity: 'bearer',
  name: undefined,
  authority: 'bearer',
  exec: true,
  session: undefined,
  requestId: undefined,
}

/** The caller's highest role in a session; undefined for control, which never attaches. */
export function roleOf({ authority, templateRole }: Caller, isTemplate: boolean): Role | undefined {
  if (authority === 'bearer') return 'driver'
  if (authority === 'control') return undefined
  return isTemplate ? (templateRole ?? authority) : authority
}
