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

/** What stands in a text for bytes that are none. */
const REPLACEMENT = '\ufffd'
const MESSAGE = 'An argument is not UTF-8, and would arrive as another one'
const NAME_FOLDER = 'name the folder that it is in instead'
const USE_SHELL = `spell such bytes where the command runs: -- bash -c "rm \\$'\\xff'"`

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    // That is the answer.
    return false
  }
}

/** The bytes of this program's command line, where the system tells them. */
function readCommandLine(): Uint8Array | undefined {
  try {
    return readFileSync('/proc/self/cmdline')
  } catch {
    // Not Linux.
    return undefined
  }
}

/** What is wrong with arguments that are not UTF-8: they are other ones here than were typed, and name other files. */
export function findEncodingProblem(
  argv: readonly string[],
  isCommand: boolean,
  read = readCommandLine,
): { readonly message: string; readonly hint: string } | undefined {
  if (!argv.some((word) => word.includes(REPLACEMENT))) return undefined
  const bytes = read()
  if (bytes === undefined || isUtf8(bytes)) return undefined
  return { message: MESSAGE, hint: isCommand ? NAME_FOLDER : USE_SHELL }
}
