import type { RunningExec } from './api.ts'
import type { StoredExec } from './exec-store.ts'

/** Variable of a process that names its session; it is on the command line, which the API lists. */
const MARKER = 'SANDWIRE_SESSION'
/** The API reports creation times in seconds. */
const CREATED_TOLERANCE_MS = 2_000

/** Argument of `env` that marks the process of a session. */
export function markOf(session: string): string {
  return `${MARKER}=${session}`
}

/** True for a process of any session of these sandboxes. */
export function isMarkedOf({ command }: RunningExec, sandboxes: ReadonlySet<string>): boolean {
  return [...sandboxes].some((sandbox) => command.includes(`${MARKER}=${sandbox}.`))
}

export function isOfSession({ command }: RunningExec, session: string): boolean {
  return command.split(' ').includes(markOf(session))
}

/** True for the process of a session as it is stored. */
export function isSame(exec: StoredExec, running: RunningExec): boolean {
  if (exec.known === undefined) return isOfSession(running, exec.session)
  const { id, createdSeconds } = exec.known
  return running.id === id && Math.abs(running.createdMs - createdSeconds * 1000) <= CREATED_TOLERANCE_MS
}
