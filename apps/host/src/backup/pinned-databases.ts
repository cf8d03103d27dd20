import { Database } from 'bun:sqlite'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { isRunning, type ProcessIdentity } from '../data/process-identity.ts'

/** A database may be locked for a moment, for instance by a checkpoint of its log. */
const MAX_TRIES = 20
const RETRY_MS = 100
/** Continues control even if this process is killed while control is stopped. */
const WATCHDOG_SECONDS = 20
/** Longest time for which control is stopped, well before the watchdog continues it. */
const MAX_STOP_MS = 15_000

/** A database at the moment at which it was pinned. */
export interface PinnedDatabase {
  /** Path in the folder of objects. */
  readonly name: string
  /** The content of the file. */
  read(): Uint8Array<ArrayBuffer>
}

export interface PinnedDatabases extends Disposable {
  readonly databases: readonly PinnedDatabase[]
}

/**
 * Opens a read transaction on all databases of control at one moment: control is stopped meanwhile, for about 2 ms each on a busy
 * machine, and writes on afterwards. Nothing is stopped when control does not run.
 */
export async function pinDatabases(
  objects: string,
  control: ProcessIdentity | undefined,
): Promise<PinnedDatabases> {
  for (let tries = 1; ; tries += 1) {
    try {
      using _ = stopProcess(control)
      return openAll(objects, control === undefined ? Number.POSITIVE_INFINITY : MAX_STOP_MS)
    } catch (error) {
      if (!isBusy(error) || tries === MAX_TRIES) throw toBackupError(error)
      await Bun.sleep(RETRY_MS)
    }
  }
}

/** Stops a process until disposed. */
function stopProcess(control: ProcessIdentity | undefined): Disposable {
  if (control === undefined || !isRunning(control)) return { [Symbol.dispose]: () => undefined }
  const { pid } = control
  const watchdog = Bun.spawn(['sh', '-c', `sleep ${WATCHDOG_SECONDS}; kill -CONT ${pid}`], {
    stdio: ['ignore', 'ignore', 'ignore'],
    detached: true,
  })
  process.kill(pid, 'SIGSTOP')
  return {
    [Symbol.dispose]: () => {
      process.kill(pid, 'SIGCONT')
      watchdog.kill()
    },
  }
}

/** Without waiting, so that control is not stopped for long. */
function openAll(objects: string, maxMs: number): PinnedDatabases {
  const endMs = performance.now() + maxMs
  const opened: { readonly name: string; readonly database: Database }[] = []
  const close = (): void => {
    for (const { database } of opened) database.close()
  }
  try {
    const names = readdirSync(objects, { recursive: true, encoding: 'utf8' })
    for (const name of names.filter((each) => each.endsWith('.sqlite')).toSorted()) {
      if (performance.now() > endMs)
        throw new SandwireError(
          'timed_out',
          'Cannot back up while the server runs: it has too many databases\nhint: stop the server, then back up',
        )
      // A connection that may only read would leave the files of its log behind.
      const database = new Database(path.join(objects, name), { readwrite: true, create: false })
      opened.push({ name, database })
      database.run('BEGIN')
      // A transaction begins with its first read.
      database.query('SELECT COUNT(*) FROM sqlite_master').get()
    }
  } catch (error) {
    close()
    throw error
  }
  return {
    databases: opened.map(({ name, database }) => ({
      name,
      read: () => new Uint8Array(database.serialize()),
    })),
    [Symbol.dispose]: close,
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')
}

function toBackupError(error: unknown): SandwireError {
  if (error instanceof SandwireError) return error
  return new SandwireError('internal', 'Cannot back up: a database of control cannot be read', {
    cause: error,
  })
}
