import type { LifecycleDependencies } from '../../src/sandbox/lifecycle-dependencies.ts'

/** A server that does not save files. */
export const NO_VERSIONS: LifecycleDependencies['files'] = {
  isEnabled: false,
  saved: { state: 'idle', savedMs: null, error: null },
  watch: () => undefined,
  hasPendingRestore: false,
  hasFiles: () => true,
  saveBeforeStop: async () => undefined,
  restoreAtStart: async () => undefined,
}
