import type { LifecycleDependencies } from '../../src/sandbox/lifecycle-dependencies.ts'

/** A server that does not save files. */
export const NO_VERSIONS: LifecycleDependencies['files'] = {
  isEnabled: false,
  saved: { state: 'idle', savedMs: null, error: null, restored: null },
  watch: () => undefined,
  hasPendingRestore: false,
  hasFiles: () => true,
  prepareStart: () => undefined,
  recover: () => false,
  saveBeforeStop: async () => undefined,
  restoreAtStart: async () => undefined,
}
