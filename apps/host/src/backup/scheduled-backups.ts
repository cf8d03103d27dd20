import { describeCause, type Log } from '../log.ts'
import type { Backup } from './backup.ts'
import type { BackupStore } from './backup-store.ts'

/** After the start of the server, which has other work. */
const FIRST_CHECK_MS = 10 * 60_000
const CHECK_MS = 10 * 60_000
/** Backups that are kept. */
const KEPT = 7

const TIME = /^(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)z$/

/** The name of a backup: `20260131t093000z`. */
export function backupName(atMs: number): string {
  return new Date(atMs)
    .toISOString()
    .replaceAll(/[-:]|\.\d+/g, '')
    .toLowerCase()
}

/** When a backup was made; undefined for other names. */
function timeOf(name: string): number | undefined {
  return TIME.test(name) ? Date.parse(name.replace(TIME, '$1-$2-$3T$4:$5:$6Z')) : undefined
}

export interface ScheduledBackupOptions {
  readonly store: BackupStore
  readonly everyMs: number
  readonly make: () => Promise<Backup>
  readonly nowMs: () => number
  readonly log: Log
}

/** Makes a backup if the newest is old enough, and deletes the oldest. Returns its name; undefined: none was due. */
export async function backUpIfDue({
  store,
  everyMs,
  make,
  nowMs,
}: Omit<ScheduledBackupOptions, 'log'>): Promise<string | undefined> {
  const names = (await store.list()).filter((name) => timeOf(name) !== undefined).toSorted()
  const newestMs = timeOf(names.at(-1) ?? '') ?? Number.NEGATIVE_INFINITY
  if (nowMs() - newestMs < everyMs) return undefined
  const { bytes, information } = await make()
  const made = backupName(information.createdMs)
  await store.put(made, bytes)
  for (const name of [...names, made].slice(0, -KEPT)) await store.delete(name)
  return made
}

/** Backs up on a schedule until disposed. A failure is logged, and tried again by the next check. */
export function scheduleBackups(options: ScheduledBackupOptions): Disposable {
  const { log } = options
  let timer: ReturnType<typeof setTimeout> | undefined
  const check = async (): Promise<void> => {
    try {
      const made = await backUpIfDue(options)
      if (made !== undefined) log.info('backup_made')
    } catch (error) {
      log.warn('backup_failed', { cause: describeCause(error) })
    }
    timer = setTimeout(() => void check(), CHECK_MS)
  }
  timer = setTimeout(() => void check(), FIRST_CHECK_MS)
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}
