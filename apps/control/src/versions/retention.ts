/** Which versions are kept. */
export interface Retention {
  /** The newest automatic versions, by number. */
  readonly automaticVersions: number
  /** Days until a checkpoint is deleted; null: it is kept until someone deletes it. */
  readonly checkpointDays: number | null
}

/** What a sandbox, an account or the operator sets; the rest is inherited. */
export type RetentionSettings = Partial<Retention>

export const MAX_AUTOMATIC_VERSIONS = 1_000
export const MAX_CHECKPOINT_DAYS = 3_650

const DEFAULT: Retention = { automaticVersions: 10, checkpointDays: null }

/** Combines settings; later ones win. */
export function resolveRetention(...settings: readonly RetentionSettings[]): Retention {
  return Object.assign({}, DEFAULT, ...settings) as Retention
}
