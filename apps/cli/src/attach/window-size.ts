import { isatty, type WriteStream } from 'node:tty'

export interface WindowSize {
  readonly cols: number
  readonly rows: number
}

/** Size without a terminal. */
const DEFAULT_SIZE: WindowSize = { cols: 80, rows: 24 }

/** The terminal for output. Other streams are not touched, because Bun would change their flags. */
function windowStream(): WriteStream | undefined {
  if (isatty(1)) return process.stdout
  return isatty(2) ? process.stderr : undefined
}

export function readWindowSize(): WindowSize {
  const [cols, rows] = windowStream()?.getWindowSize() ?? [0, 0]
  return cols > 0 && rows > 0 ? { cols, rows } : DEFAULT_SIZE
}

/** Calls `listener` with each new size until disposed. */
export function watchWindowSize(listener: (size: WindowSize) => void): Disposable {
  const stream = windowStream()
  // The stream handles SIGWINCH and emits `resize`.
  const changed = (): void => listener(readWindowSize())
  stream?.on('resize', changed)
  return { [Symbol.dispose]: () => void stream?.off('resize', changed) }
}

/** Width of the terminal on stdout; undefined without one. */
export function stdoutColumns(): number | undefined {
  return isatty(1) ? readWindowSize().cols : undefined
}
