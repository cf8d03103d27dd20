import { rmSync } from 'node:fs'
import path from 'node:path'
import { schema } from '@sandwire/protocol'
import { readPrivateFile, writePrivateFile } from '../data/private-file.ts'
import { isRunning, type ProcessIdentity, programOf } from '../data/process-identity.ts'

/** A killed process ends within milliseconds; on a loaded machine within this. */
const GONE_TIMEOUT_MS = 10_000
const POLL_MS = 10

const identitySchema = schema.record({
  pid: schema.integer(2, 2 ** 31),
  startTicks: schema.nonNegativeInteger,
})

/** Records the workerd of a data folder. */
export function recordWorkerd(file: string, { pid, startTicks }: ProcessIdentity): void {
  writePrivateFile(file, JSON.stringify({ pid, startTicks }))
}

export function removeWorkerdRecord(file: string): void {
  rmSync(file, { force: true })
}

/** The workerd of a data folder, as it was recorded; it may have ended. */
export function readWorkerd(file: string): ProcessIdentity | undefined {
  try {
    return identitySchema.decode(JSON.parse(readPrivateFile(file) ?? 'null'))
  } catch {
    // Malformed: no process is killed.
    return undefined
  }
}

/** Kills the workerd that outlived the last host: two must never write to the same databases. */
export async function endOrphanedWorkerd(file: string): Promise<ProcessIdentity | undefined> {
  const orphan = readWorkerd(file)
  if (orphan === undefined || !isRunning(orphan)) return undefined
  // Pid and start time identify the process; its program is checked in case the file was edited.
  if (path.basename(programOf(orphan.pid) ?? '').replace(/ \(deleted\)$/, '') !== 'workerd') return undefined
  process.kill(orphan.pid, 'SIGKILL')
  for (let waitedMs = 0; isRunning(orphan) && waitedMs < GONE_TIMEOUT_MS; waitedMs += POLL_MS)
    await Bun.sleep(POLL_MS)
  removeWorkerdRecord(file)
  return orphan
}
