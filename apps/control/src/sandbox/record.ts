import type { NetworkSpec, SandboxLimits } from '@sandwire/internal-api'
import type { AccessName } from './access.ts'
import type { SavedState } from './file-versions.ts'
import type { SandboxState } from './state.ts'

/** Settings of a sandbox. */
export interface SandboxSettings {
  readonly network: NetworkSpec
  readonly limits: SandboxLimits
  /** Environment of every process from the next start on. Never a secret. */
  readonly env: Readonly<Record<string, string>>
  /** Absent: the server's default. Null: never. */
  readonly sleepAfterMs?: number | null
}

/** The stored sandbox. */
export interface SandboxRecord {
  readonly id: string
  /** Account that owns it. */
  readonly owner: string
  readonly name: string
  readonly createdMs: number
  readonly settings: SandboxSettings
  readonly state: SandboxState
  /** Latest input, output, attach or start. */
  readonly lastActivityMs: number
  /** It ran, so that it may have files of a user. */
  readonly hasFiles: boolean
}

/** A sandbox as the API shows it. */
export interface SandboxView {
  readonly id: string
  readonly name: string
  readonly state: SandboxState['kind']
  /** Why it stopped or failed, unless a user stopped it. */
  readonly reason: string | null
  readonly createdMs: number
  readonly startedMs: number | null
  readonly lastActivityMs: number
  /** Seconds without input and output after which it stops; null: never. */
  readonly sleepAfterSeconds: number | null
  /** Files do not survive a stop. */
  readonly ephemeral: boolean
  /** Whether its files are saved; null: this server does not save them. */
  readonly saved: SavedState | null
  readonly network: NetworkSpec
  readonly limits: SandboxLimits
  /** Names only: values may be private. */
  readonly env: readonly string[]
  /** The caller's access; absent for the owner. */
  readonly access?: AccessName
  /** Name of the owner; absent for the owner. */
  readonly owner?: string
}
