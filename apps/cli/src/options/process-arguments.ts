import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/** Field of /proc/self/stat, counted after the command name, with the address of the first argument. */
const ARG_START_FIELD = 45

/**
 * Overwrites an argument of this process in memory, so that `ps` no longer shows it. Linux only; other users could read
 * it for some milliseconds.
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
    // No /proc, or a kernel that forbids it. The help recommends --token-file.
  }
}

const REPLACEMENT_CHARACTER = '\ufffd'
const MESSAGE = 'An argument is not valid UTF-8, and would be changed on the way'
const NAME_FOLDER = 'name its folder instead'
const USE_SHELL = `write such bytes in the remote shell: -- bash -c "rm \\$'\\xff'"`

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    // The decoder throws for invalid bytes only.
    return false
  }
}

function readCommandLine(): Uint8Array | undefined {
  try {
    return readFileSync('/proc/self/cmdline')
  } catch {
    // Not Linux.
    return undefined
  }
}

/**
 * Finds arguments that are not UTF-8. Bun replaces their bytes, so that they would name other files than the user typed.
 */
export function findEncodingProblem(
  argv: readonly string[],
  isCommand: boolean,
  read = readCommandLine,
): { readonly message: string; readonly hint: string } | undefined {
  if (!argv.some((argument) => argument.includes(REPLACEMENT_CHARACTER))) return undefined
  const bytes = read()
  if (bytes === undefined || isUtf8(bytes)) return undefined
  return { message: MESSAGE, hint: isCommand ? NAME_FOLDER : USE_SHELL }
}
