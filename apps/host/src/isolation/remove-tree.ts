import { lstatSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { SYSTEM_ENV } from './system-tools.ts'

/** A disk of small files takes seconds. A longer removal continues with the next request; control waits 30 s. */
const REMOVE_TIMEOUT_MS = 20_000

/** Runs a command until it ends or the signal aborts it; true on success. */
async function succeeds(argv: readonly string[], signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false
  const child = Bun.spawn([...argv], {
    stdio: ['ignore', 'ignore', 'ignore'],
    env: SYSTEM_ENV,
    signal,
    killSignal: 'SIGKILL',
  })
  return (await child.exited) === 0
}

/**
 * Removes a sandbox's files, however deeply nested or protected, without following links or entering other file systems. Runs in
 * other processes, so that the event loop is not blocked. A missing tree is no error.
 */
export async function removeTree(tree: string, timeoutMs = REMOVE_TIMEOUT_MS): Promise<void> {
  if (lstatSync(tree, { throwIfNoEntry: false }) === undefined) return
  const signal = AbortSignal.timeout(timeoutMs)
  const remove = ['rm', '-rf', '--one-file-system', '--', tree]
  if (await succeeds(remove, signal)) return
  // Modes may exclude the owner, but not root. `chmod -R` skips links; it would enter other file systems, but without root there
  // are none.
  const isFolder = lstatSync(tree, { throwIfNoEntry: false })?.isDirectory() === true
  if (isFolder && process.getuid?.() !== 0) await succeeds(['chmod', '-R', 'u+rwx', '--', tree], signal)
  if (await succeeds(remove, signal)) return
  const why = signal.aborted
    ? `it takes longer than ${timeoutMs / 1000} s; try again`
    : 'the system does not allow it'
  throw new SandwireError('sandbox_failed', `Cannot remove the files of the sandbox: ${why}`, { cause: tree })
}
