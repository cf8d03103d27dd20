import type { NetworkSpec, SandboxLimits } from '@sandwire/internal-api'
import type { Standing } from './access.ts'
import type { SandboxState } from './state.ts'

/** What a sandbox is made with. */
export interface SandboxSettings {
  readonly network: NetworkSpec
  readonly limits: SandboxLimits
  /** Given to every process from the next start on. Never a secret. */
  readonly env: Readonly<Record<string, string>>
  /** Absent: the server's default. Null: never. */
  readonly sleepAfterMs?: number | null
}

/** Everything that is stored of a sandbox. */
export interface SandboxRecord {
  readonly id: string
  /** Identity it belongs to. */
  readonly owner: string
  readonly name: string
  readonly createdMs: number
  readonly settings: SandboxSettings
  readonly state: SandboxState
  /** Latest input, output, attach or start that was seen. */
  readonly lastActivityMs: number
}

/** A sandbox as the API shows it. */
export interface SandboxView {
  readonly id: string
  readonly name: string
  readonly state: SandboxState['is']
  /** Why it stopped or failed, when nobody asked for it. */
  readonly reason: string | null
  readonly createdMs: number
  readonly startedMs: number | null
  readonly lastActivityMs: number
  /** Seconds without input and output after which it stops; null: never. */
  readonly sleepAfterSeconds: number | null
  /** Files do not survive a stop. */
  readonly ephemeral: boolean
  readonly network: NetworkSpec
  readonly limits: SandboxLimits
  /** Names only: values may be private. */
  readonly env: readonly string[]
  /** How whoever asks is there; absent: as its owner. */
  readonly access?: Standing
  /** Name of the owner, for everybody else. */
  readonly owner?: string
}
