import { readdirSync, readFileSync } from 'node:fs'

/** A process as `/proc` tells of it, readable by everybody. */
export interface ProcessEntry {
  readonly pid: number
  readonly parent: number
  readonly uid: number
  /** Its pid in the innermost namespace it is in. */
  readonly innerPid: number
  readonly residentBytes: number
  readonly isZombie: boolean
}

function numberAfter(text: string, label: string): number {
  const start = text.indexOf(`\n${label}:`)
  return start < 0 ? 0 : Number.parseInt(text.slice(start + label.length + 2), 10)
}

/** Reads the text of `/proc/PID/status`. */
export function parseStatus(text: string): ProcessEntry {
  const inner = /\nNSpid:\s*([0-9\t]+)/.exec(text)?.[1]?.trim().split(/\s+/).at(-1)
  return {
    pid: numberAfter(text, 'Pid'),
    parent: numberAfter(text, 'PPid'),
    uid: numberAfter(text, 'Uid'),
    innerPid: Number(inner ?? 0),
    residentBytes: numberAfter(text, 'VmRSS') * 1024,
    isZombie: /\nState:\s*[ZX]/.test(text),
  }
}

/** One process, or undefined when there is none. */
export function findProcess(pid: number): ProcessEntry | undefined {
  try {
    return parseStatus(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    // It ended, which is an answer.
    return undefined
  }
}

export function listProcesses(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map((name) => findProcess(Number(name)))
    .filter((entry) => entry !== undefined)
}

/** Every descendant of a process, without itself. */
export function descendantsOf(root: number, table: readonly ProcessEntry[]): ProcessEntry[] {
  const children = Map.groupBy(table, (entry) => entry.parent)
  const found: ProcessEntry[] = []
  const open = [root]
  for (let pid = open.pop(); pid !== undefined; pid = open.pop())
    for (const child of children.get(pid) ?? []) {
      found.push(child)
      open.push(child.pid)
    }
  return found
}

/** Sends a signal; false when there is no such process. */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch {
    // Gone, which is what a signal is mostly for.
    return false
  }
}
