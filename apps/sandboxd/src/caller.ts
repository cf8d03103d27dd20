import type { AUTHORITIES } from '@sandwire/internal-api'
import type { Role } from '@sandwire/protocol'

/** On whose behalf a request is made: whoever has the secret, control itself, or a person in a role. */
export type CallerAuthority = 'bearer' | (typeof AUTHORITIES)[number]

/** Who makes a request, as its credential says. */
export interface Caller {
  /** Create ids and attachments belong to it. */
  readonly identity: string
  /** What other attachments see of it, instead of what it calls itself. */
  readonly name: string | undefined
  readonly authority: CallerAuthority
  /** What it is in a session that is new to it, unless it says. */
  readonly usualRole?: Role
  /** The most it may be where a template of the operator runs, when that is more. */
  readonly templateRole?: Role
  /** Sign-in and grant that its right to be here hangs on. */
  readonly login?: string
  readonly grant?: string
  /** When a connection that it opens has to show its right again, in milliseconds since the epoch. */
  readonly reauthorizeMs?: number
  /** May start any command and set any environment. */
  readonly exec: boolean
  /** May start what its request says, although it may not choose. */
  readonly starts?: boolean
  /** Environment of what it starts, over what a hello says. */
  readonly env?: Readonly<Record<string, string>>
  /** Id for the session that the request starts. */
  readonly session: string | undefined
  /** What a connection is told that its session is called; undefined: its id. */
  readonly sessionName?: string
  /** Id of the request where it came from; undefined when it begins here. */
  readonly requestId: string | undefined
}

/** Everybody who has the secret, and everybody when there is none. */
export const BEARER: Caller = {
  identity: 'bearer',
  name: undefined,
  authority: 'bearer',
  exec: true,
  session: undefined,
  requestId: undefined,
}

/** The most a caller may be in a session; undefined for control, which never attaches. */
export function roleOf({ authority, templateRole }: Caller, isTemplate: boolean): Role | undefined {
  if (authority === 'bearer') return 'driver'
  if (authority === 'control') return undefined
  return isTemplate ? (templateRole ?? authority) : authority
}
