/** As much of a terminal emulator as is needed to guard it: xterm.js has it, in a page and without one. */
export interface GuardedTerminal {
  readonly cols: number
  readonly buffer: {
    readonly active: { readonly cursorX: number; readonly cursorY: number; readonly length: number }
  }
  readonly parser: {
    /** The handler says whether nobody else is to see the sequence. */
    registerCsiHandler(
      sequence: { readonly prefix?: string; readonly final: string },
      handler: (parameters: readonly (number | number[])[]) => boolean,
    ): unknown
  }
}

const ERASE_ABOVE = 1

/**
 * Keeps xterm.js from erasing up to the last cell of a screen without scrollback: it looks for the line below the last one, throws
 * where there is none, and parses nothing ever after. Such an erasure is left out, at both ends alike.
 */
export function guardErase(terminal: GuardedTerminal): void {
  const isFatal = ([which]: readonly (number | number[])[]): boolean => {
    const { cursorX, cursorY } = terminal.buffer.active
    return which === ERASE_ABOVE && cursorX + 1 >= terminal.cols && !hasLineBelow(terminal, cursorY)
  }
  terminal.parser.registerCsiHandler({ final: 'J' }, isFatal)
  terminal.parser.registerCsiHandler({ prefix: '?', final: 'J' }, isFatal)
}

/** The list of lines is a ring: behind its end is its start. How long the ring is, nothing public tells. */
function hasLineBelow(terminal: GuardedTerminal, row: number): boolean {
  let found: unknown = terminal
  for (const name of ['_core', '_bufferService', 'buffer', 'lines', 'maxLength'])
    found = typeof found === 'object' && found !== null ? Reflect.get(found, name) : undefined
  return row + 1 < terminal.buffer.active.length || (typeof found === 'number' && row + 1 >= found)
}
