import { readFileSync } from 'node:fs'
import { descendantsOf, findProcess, listProcesses } from './process-table.ts'

/** Pids inside: bubblewrap's init, and sandboxd, which it started first. */
const INIT = 1
const DAEMON = 2

/** Reads which process is the init of a sandbox from what bubblewrap wrote. */
export function parseInfo(text: string): number | undefined {
  const pid = /"child-pid":\s*([0-9]+)/.exec(text)?.[1]
  return pid === undefined ? undefined : Number(pid)
}

/** The sandbox's init, for as long as anything in the sandbox lives: it ends last. */
export function findInit(infoFile: string): number | undefined {
  const pid = parseInfo(read(infoFile))
  const entry = pid === undefined ? undefined : findProcess(pid)
  return entry?.innerPid === INIT && !entry.isZombie ? entry.pid : undefined
}

export function findDaemon(infoFile: string): number | undefined {
  const init = findInit(infoFile)
  if (init === undefined) return undefined
  return descendantsOf(init, listProcesses()).find(({ innerPid }) => innerPid === DAEMON)?.pid
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Never started.
    return ''
  }
}
