import type { IBufferCellPosition, ILink, ILinkProvider, Terminal } from '@xterm/xterm'

/** A place in a file, as compilers and tools print it. */
export interface FilePlace {
  readonly path: string
  readonly line?: number
  readonly column?: number
}

/** A path with a slash or an extension, perhaps with a line and a column. */
const PATH =
  /(?<![\w:/@.-])((?:\.{0,2}\/)?(?:[\w@.+-]+\/)*[\w@.+-]+\.?[\w+-]+)(?::(\d{1,7})(?::(\d{1,7}))?)?/g
const MAX_LINE_CHARS = 2_000

function isPathLike(path: string): boolean {
  return path.includes('/') || /^[\w+-][\w.+-]*\.[A-Za-z]\w{0,9}$/.test(path)
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

/** Makes paths in a terminal clickable. */
export function fileLinks(terminal: Terminal, open: (place: FilePlace) => void): ILinkProvider {
  return {
    provideLinks(y, callback) {
      const text = terminal.buffer.active.getLine(y - 1)?.translateToString(true) ?? ''
      callback(findFilePlaces(text).map((found) => toLink(found, y, open)))
    },
  }
}

function toLink(
  { at, length, place }: ReturnType<typeof findFilePlaces>[number],
  y: number,
  open: (place: FilePlace) => void,
): ILink {
  const start: IBufferCellPosition = { x: at + 1, y }
  return {
    range: { start, end: { x: at + length, y } },
    text: place.path,
    activate: (event) => {
      if (event.ctrlKey || event.metaKey) open(place)
    },
  }
}
