import type { Terminal } from '@xterm/xterm'

const ERASE_ABOVE = 1

/**
 * Keeps xterm.js from erasing up to the last cell of a screen without scrollback: it looks for the line below the last one, throws
 * where there is none, and parses nothing ever after. Such an erasure is left out; screens drawn for whoever joins do the same.
 */
export function guardErase(terminal: Terminal): void {
  const isFatal = ([which]: readonly (number | number[])[]): boolean => {
    const { cursorX, cursorY } = terminal.buffer.active
    return which === ERASE_ABOVE && cursorX + 1 >= terminal.cols && !hasLineBelow(terminal, cursorY)
  }
  terminal.parser.registerCsiHandler({ final: 'J' }, isFatal)
  terminal.parser.registerCsiHandler({ prefix: '?', final: 'J' }, isFatal)
}

/** The list of lines is a ring: behind its end is its start. How long the ring is, nothing public tells. */
function hasLineBelow(terminal: Terminal, row: number): boolean {
  let found: unknown = terminal
  for (const name of ['_core', 'buffer', 'lines', 'maxLength'])
    found = typeof found === 'object' && found !== null ? Reflect.get(found, name) : undefined
  return row + 1 < terminal.buffer.active.length || (typeof found === 'number' && row + 1 >= found)
}
