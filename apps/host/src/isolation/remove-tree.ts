import { lstatSync } from 'node:fs'
import { SandwireError } from '@sandwire/protocol'
import { SYSTEM_ENV } from './system-tools.ts'

/** A disk full of small files takes seconds; what takes longer goes on when it is stopRequested for again. Control waits 30 s. */
const REMOVE_TIMEOUT_MS = 20_000

/** Runs a tool until it ends or the time is up; true when it succeeded. */
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
 * Removes files that a sandbox made, however it nested or locked them, without following links or entering other file systems.
 * The tools are other processes, so nothing waits for them but the caller. Nothing there is no error.
 */
export async function removeTree(tree: string, timeoutMs = REMOVE_TIMEOUT_MS): Promise<void> {
  if (lstatSync(tree, { throwIfNoEntry: false }) === undefined) return
  const signal = AbortSignal.timeout(timeoutMs)
  const remove = ['rm', '-rf', '--one-file-system', '--', tree]
  if (await succeeds(remove, signal)) return
  // Folders may keep out their own owner, but not root. In a walk, chmod skips links; it would enter other file systems, but
  // whoever is not root has mounted none.
  const isFolder = lstatSync(tree, { throwIfNoEntry: false })?.isDirectory() === true
  if (isFolder && process.getuid?.() !== 0) await succeeds(['chmod', '-R', 'u+rwx', '--', tree], signal)
  if (await succeeds(remove, signal)) return
  const why = signal.aborted
    ? `it takes longer than ${timeoutMs / 1000} s; ask again`
    : 'the system does not allow it'
  throw new SandwireError('sandbox_failed', `Cannot remove the files of the sandbox: ${why}`, { cause: tree })
}
