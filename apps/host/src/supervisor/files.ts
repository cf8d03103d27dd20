import path from 'node:path'

/** Files of one sandbox in its own folder. */
export interface SandboxFiles {
  readonly folder: string
  readonly spec: string
  readonly state: string
  readonly log: string
  /** Held by the one supervisor that the sandbox may have. */
  readonly lock: string
  /** What a supervisor says when it breaks. */
  readonly crash: string
}

export function filesIn(folder: string): SandboxFiles {
  const at = (name: string): string => path.join(folder, name)
  return {
    folder,
    spec: at('spec.json'),
    state: at('state.json'),
    log: at('log.jsonl'),
    lock: at('lock'),
    crash: at('crash.txt'),
  }
}
