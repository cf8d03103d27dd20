import { isatty, type WriteStream } from 'node:tty'

export interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

/** Size without a terminal. */
const DEFAULT_SIZE: TerminalSize = { cols: 80, rows: 24 }

/** The terminal for output. Other streams are not touched, because Bun would change their flags. */
function terminalStream(): WriteStream | undefined {
  if (isatty(1)) return process.stdout
  return isatty(2) ? process.stderr : undefined
}

export function readTerminalSize(): TerminalSize {
  const [cols, rows] = terminalStream()?.getWindowSize() ?? [0, 0]
  return cols > 0 && rows > 0 ? { cols, rows } : DEFAULT_SIZE
}

/** Calls `listener` with each new size until disposed. */
export function watchTerminalSize(listener: (size: TerminalSize) => void): Disposable {
  const stream = terminalStream()
  // The stream handles SIGWINCH and emits `resize`.
  const changed = (): void => listener(readTerminalSize())
  stream?.on('resize', changed)
  return { [Symbol.dispose]: () => void stream?.off('resize', changed) }
}

/** Width of the terminal on stdout; undefined without one. */
export function stdoutColumns(): number | undefined {
  return isatty(1) ? readTerminalSize().cols : undefined
}
