import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/** Field of /proc/self/stat, counted behind the command name, that holds the address of the first argument. */
const ARG_START_FIELD = 45

/**
 * Overwrites an argument of this process where other users can read it, as `ps` does. Linux only; elsewhere nothing
 * happens. The argument was visible for the milliseconds before.
 */
export function hideArgument(secret: string): void {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    const start = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[ARG_START_FIELD])
    const cmdline = readFileSync('/proc/self/cmdline')
    const at = cmdline.indexOf(secret)
    if (at < 0 || !(start > 0)) return
    const memory = openSync('/proc/self/mem', 'r+')
    const cover = Buffer.alloc(Buffer.byteLength(secret), 'x')
    writeSync(memory, cover, 0, cover.byteLength, start + at)
    closeSync(memory)
  } catch {
    // No /proc, or a kernel that forbids it: the help says what to use instead.
  }
}
