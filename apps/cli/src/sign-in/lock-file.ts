import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { hostname } from 'node:os'
import { SandwireError } from '@sandwire/protocol'

/** Longer than anybody who works holds a lock: a request to an issuer has a shorter limit. */
const STALE_MS = 60_000
/** Between two looks at a lock that somebody holds. */
const LOOK_MS = 50
const MAX_WAIT_MS = 2 * STALE_MS

interface Holder {
  readonly host: string
  readonly pid: number
  /** Tells two locks of one process apart. */
  readonly nonce: string
}

function readHolder(file: string): { readonly text: string; readonly ageMs: number } | undefined {
  try {
    return { text: readFileSync(file, 'utf8'), ageMs: Date.now() - statSync(file).mtimeMs }
  } catch {
    // It is gone, so somebody is done with it.
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Whether whoever made a lock is gone. */
export function isStale(text: string, ageMs: number): boolean {
  if (ageMs > STALE_MS) return true
  const [, host, pid] = /^(\S+) ([1-9][0-9]{0,9}) [0-9a-f]+$/.exec(text) ?? []
  // Nothing in it yet: its maker is about to write.
  return host === hostname() && pid !== undefined && !isAlive(Number(pid))
}

function tryCreate(file: string, text: string): boolean {
  let fd: number
  try {
    fd = openSync(file, 'wx', 0o600)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
  try {
    writeSync(fd, text)
  } finally {
    closeSync(fd)
  }
  return true
}

/** Removes a stale lock. Only one process at a time does, so that nobody removes the lock that another just made. */
function breakStale(file: string): void {
  const guard = `${file}.break`
  const before = readHolder(guard)
  if (before !== undefined && isStale(before.text, before.ageMs)) rmSync(guard, { force: true })
  if (!tryCreate(guard, spellHolder())) return
  try {
    const seen = readHolder(file)
    if (seen !== undefined && isStale(seen.text, seen.ageMs)) rmSync(file, { force: true })
  } finally {
    rmSync(guard, { force: true })
  }
}

function spellHolder(): string {
  const holder: Holder = { host: hostname(), pid: process.pid, nonce: randomBytes(8).toString('hex') }
  return `${holder.host} ${holder.pid} ${holder.nonce}`
}

/** Waits for a lock that is a file; disposing gives it back. A lock whose holder is gone is broken. */
export async function openLock(file: string): Promise<Disposable> {
  const text = spellHolder()
  const endMs = performance.now() + MAX_WAIT_MS
  while (!tryCreate(file, text)) {
    const seen = readHolder(file)
    if (seen !== undefined && isStale(seen.text, seen.ageMs)) breakStale(file)
    else if (performance.now() > endMs)
      throw new SandwireError('internal', 'Cannot renew the sign-in: another process does not end')
    else await Bun.sleep(LOOK_MS)
  }
  return {
    [Symbol.dispose]: () => {
      // Not ours any more if it took so long that it was broken.
      if (readHolder(file)?.text === text) rmSync(file, { force: true })
    },
  }
}
