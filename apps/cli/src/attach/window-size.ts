import { isatty, type WriteStream } from 'node:tty'

export interface WindowSize {
  readonly cols: number
  readonly rows: number
}

/** What a program without a window is told. */
const NO_WINDOW: WindowSize = { cols: 80, rows: 24 }

/** The terminal that output goes to. A stream that is no terminal is not touched: Bun would change its flags. */
function windowStream(): WriteStream | undefined {
  if (isatty(1)) return process.stdout
  return isatty(2) ? process.stderr : undefined
}

export function readWindowSize(): WindowSize {
  const [cols, rows] = windowStream()?.getWindowSize() ?? [0, 0]
  return cols > 0 && rows > 0 ? { cols, rows } : NO_WINDOW
}

/** Calls `listener` with each new size until disposed. */
export function watchWindowSize(listener: (size: WindowSize) => void): Disposable {
  const stream = windowStream()
  // The stream learns the size from SIGWINCH itself, and tells it when it is known.
  const changed = (): void => listener(readWindowSize())
  stream?.on('resize', changed)
  return { [Symbol.dispose]: () => void stream?.off('resize', changed) }
}

/** Width of the terminal that standard output goes to; undefined when it goes elsewhere. */
export function stdoutColumns(): number | undefined {
  return isatty(1) ? readWindowSize().cols : undefined
}
