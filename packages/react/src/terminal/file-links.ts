import type { IBufferCell, IBufferLine, ILink, ILinkProvider, Terminal } from '@xterm/xterm'

/** A place in a file, as compilers and tools print it. */
export interface FilePlace {
  readonly path: string
  readonly line?: number
  readonly column?: number
  /** Folder that the shell was last in, where it says so (OSC 7). */
  readonly folder?: string
}

/** What names consist of: letters of all scripts, digits and a few signs. */
const NAME = String.raw`[\p{L}\p{M}\p{N}_@.+\-]`
const END = String.raw`[\p{L}\p{M}\p{N}_+\-]`
/** A path with a slash or an extension, perhaps with a line and a column. */
const PATH = new RegExp(
  String.raw`(?<![\p{L}\p{M}\p{N}_:/@.\-])((?:\.{0,2}/)?(?:${NAME}+/)*${NAME}+\.?${END}+)(?::(\d{1,7})(?::(\d{1,7}))?)?`,
  'gu',
)
const BARE_NAME = /^[\p{L}\p{M}\p{N}_+-][\p{L}\p{M}\p{N}_.+-]*\.[A-Za-z]\w{0,9}$/u
const MAX_LINE_CHARS = 2_000

function isPathLike(path: string): boolean {
  return path.includes('/') || BARE_NAME.test(path)
}

/** The places in files that a line of text names, with where they stand in it. */
export function findFilePlaces(
  text: string,
): readonly { readonly at: number; readonly length: number; readonly place: FilePlace }[] {
  return [...text.slice(0, MAX_LINE_CHARS).matchAll(PATH)].flatMap((match) => {
    const [whole, path = '', line, column] = match
    if (!isPathLike(path) || /^\d+(\.\d+)+$/.test(path)) return []
    const place = {
      path,
      ...(line === undefined ? {} : { line: Number(line) }),
      ...(column === undefined ? {} : { column: Number(column) }),
    }
    return [{ at: match.index, length: whole.length, place }]
  })
}

/** As much of a line of a terminal as is read here. */
interface Row {
  readonly length: number
  getCell(x: number): Pick<IBufferCell, 'getWidth' | 'getChars'> | undefined
}

/** The text of a line, and for each of its characters the cells that it stands in, counted from 1. */
export function readCells(line: Row): {
  readonly text: string
  readonly cells: readonly { readonly from: number; readonly to: number }[]
} {
  let text = ''
  const cells: { from: number; to: number }[] = []
  for (let x = 0; x < line.length; x += 1) {
    const cell = line.getCell(x)
    const width = cell?.getWidth() ?? 1
    // The second half of a wide character.
    if (width === 0) continue
    const characters = cell?.getChars() ?? ''
    const shown = characters === '' ? ' ' : characters
    text += shown
    for (let unit = 0; unit < shown.length; unit += 1) cells.push({ from: x + 1, to: x + width })
  }
  return { text, cells }
}

/** Makes paths in a terminal clickable. */
export function fileLinks(terminal: Terminal, open: (place: FilePlace) => void): ILinkProvider {
  return {
    provideLinks(y, callback) {
      const line = terminal.buffer.active.getLine(y - 1)
      callback(line === undefined ? [] : linksIn(line, y, open))
    },
  }
}

function linksIn(line: IBufferLine, y: number, open: (place: FilePlace) => void): ILink[] {
  const { text, cells } = readCells(line)
  return findFilePlaces(text).map(({ at, length, place }) => ({
    range: {
      start: { x: cells[at]?.from ?? 1, y },
      end: { x: cells[at + length - 1]?.to ?? 1, y },
    },
    text: place.path,
    activate: (event) => {
      if (event.ctrlKey || event.metaKey) open(place)
    },
  }))
}
