import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { Interrupted } from '../errors/interrupted.ts'
import { RawTerminal } from '../attach/raw-terminal.ts'

const CTRL_C = 0x03
const CTRL_D = 0x04
const CTRL_U = 0x15
const ENDS = new Set([0x0a, 0x0d])
const ERASES = new Set([0x08, 0x7f])
const MAX_BYTES = 4096

/** What the bytes typed so far amount to. */
export function editLine(line: readonly number[], byte: number): readonly number[] {
  if (ERASES.has(byte)) return line.slice(0, -1)
  if (byte === CTRL_U) return []
  return byte < 0x20 || line.length >= MAX_BYTES ? line : [...line, byte]
}

/** Asks on the terminal for a line that is not shown; undefined when whoever sits there would rather not. Throws `Interrupted`. */
export function askSecret(question: string): string | undefined {
  const fd = openSync('/dev/tty', 'r+')
  using terminal = new RawTerminal(fd)
  try {
    writeSync(fd, question)
    let line: readonly number[] = []
    const buffer = new Uint8Array(256)
    while (terminal.isRaw) {
      const read = readSync(fd, buffer)
      for (const byte of buffer.subarray(0, read)) {
        if (ENDS.has(byte)) return Buffer.from(line).toString('utf8')
        if (byte === CTRL_C) throw new Interrupted()
        if (byte === CTRL_D && line.length === 0) return undefined
        line = editLine(line, byte)
      }
      if (read === 0) return undefined
    }
    return undefined
  } finally {
    terminal.leave()
    writeSync(fd, '\n')
    closeSync(fd)
  }
}
