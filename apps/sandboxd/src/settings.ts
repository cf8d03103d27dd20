import { DEFAULT_LIMITS, limits, type SessionLimits } from '@sandwire/protocol'
import type { Credential } from './http/request-guard.ts'

/** Settings of the operator; `main` reads them from the command line. */
export interface Settings {
  readonly version: string
  /** Absolute path of the workspace. */
  readonly workspace: string
  /** Environment that every process starts with. */
  readonly baseEnv: Readonly<Record<string, string>>
  /** Command for clients that name none. */
  readonly shell: readonly [string, ...string[]]
  readonly credential: Credential
  /** Origins of web pages that may connect. */
  readonly origins: readonly string[]
  /** Accepted Host headers besides the listening address. */
  readonly hosts: readonly string[]
  readonly maxSessions: number
  /** Longest lifetime and idle timeout of a session, also of one that requests none; 0: no limit. */
  readonly maxLifetimeSeconds: number
  readonly maxIdleSeconds: number
  /** HTTP requests and upgrades per second; bursts may have twice that. */
  readonly requestsPerSecond: number
  readonly maxMessageBytes: number
  readonly session: SessionLimits
}

export const DEFAULT_MAX_SESSIONS = 1_000
export const DEFAULT_REQUESTS_PER_SECOND = 500
export const DEFAULT_MAX_MESSAGE_BYTES = limits.MAX_MESSAGE_BYTES
export const DEFAULT_SESSION_LIMITS = DEFAULT_LIMITS
