/** The part of xterm.js that is needed here, in a page or headless. */
export interface GuardedTerminal {
  readonly cols: number
  readonly buffer: {
    readonly active: { readonly cursorX: number; readonly cursorY: number; readonly length: number }
  }
  readonly parser: {
    /** The handler returns true to stop further processing of the sequence. */
    registerCsiHandler(
      sequence: { readonly prefix?: string; readonly final: string },
      handler: (parameters: readonly (number | number[])[]) => boolean,
    ): unknown
  }
}

const ERASE_ABOVE = 1

/**
 * Works around a bug of xterm.js 6: erasing up to the last cell of a screen without scrollback reads the line below the last one,
 * throws, and stops all parsing. Such an erasure is skipped, in the page and in sandboxd alike.
 */
export function guardErase(terminal: GuardedTerminal): void {
  const isFatal = ([which]: readonly (number | number[])[]): boolean => {
    const { cursorX, cursorY } = terminal.buffer.active
    return which === ERASE_ABOVE && cursorX + 1 >= terminal.cols && !hasLineBelow(terminal, cursorY)
  }
  terminal.parser.registerCsiHandler({ final: 'J' }, isFatal)
  terminal.parser.registerCsiHandler({ prefix: '?', final: 'J' }, isFatal)
}

/** xterm.js stores lines in a ring buffer, which wraps at its end. Its public API does not report the length. */
function hasLineBelow(terminal: GuardedTerminal, row: number): boolean {
  let found: unknown = terminal
  for (const name of ['_core', '_bufferService', 'buffer', 'lines', 'maxLength'])
    found = typeof found === 'object' && found !== null ? Reflect.get(found, name) : undefined
  return row + 1 < terminal.buffer.active.length || (typeof found === 'number' && row + 1 >= found)
}
