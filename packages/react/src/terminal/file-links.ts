import type { IBufferCell, ILink, ILinkProvider } from '@xterm/xterm'

/** A location in a file, as compilers and tools print it. */
export interface FileLocation {
  readonly path: string
  readonly line?: number
  readonly column?: number
  /** The shell's working directory, if it reports it (OSC 7). */
  readonly folder?: string
}

/** Characters of names: letters of all scripts, digits and some punctuation. */
const NAME = String.raw`[\p{L}\p{M}\p{N}_@.+\-]`
const END = String.raw`[\p{L}\p{M}\p{N}_+\-]`
/** A path with a slash or an extension, optionally with line and column. */
const PATH = new RegExp(
  String.raw`(?<![\p{L}\p{M}\p{N}_:/@.\-])((?:\.{0,2}/)?(?:${NAME}+/)*${NAME}+\.?${END}+)(?::(\d{1,7})(?::(\d{1,7}))?)?`,
  'gu',
)
const BARE_NAME = /^[\p{L}\p{M}\p{N}_+-][\p{L}\p{M}\p{N}_.+-]*\.[A-Za-z]\w{0,9}$/u
const MAX_LINE_CHARS = 2_000

function isPathLike(path: string): boolean {
  return path.includes('/') || BARE_NAME.test(path)
}

/** The file locations in a line of text, with their positions. */
export function findFileLocations(
  text: string,
): readonly { readonly at: number; readonly length: number; readonly place: FileLocation }[] {
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

/** The part of a buffer line that is used here. */
interface Row {
  readonly length: number
  /** Continues the line above. */
  readonly isWrapped: boolean
  getCell(x: number): Pick<IBufferCell, 'getWidth' | 'getChars'> | undefined
}

/** The part of a buffer that is used here. */
interface Rows {
  getLine(y: number): Row | undefined
}

/** The cells of a character, counted from 1. */
interface Place {
  readonly from: number
  readonly to: number
  readonly y: number
}

/** Text with the cells of each of its characters. */
interface PositionedText {
  readonly text: string
  readonly places: readonly Place[]
}

/** Appends a row. */
function addRow(before: PositionedText, row: Row, y: number, goesOn: boolean): PositionedText {
  let { text } = before
  const places = [...before.places]
  for (let x = 0; x < row.length; x += 1) {
    const cell = row.getCell(x)
    const width = cell?.getWidth() ?? 1
    const characters = cell?.getChars() ?? ''
    // The second half of a wide character, or the gap left when one wrapped to the next row.
    if (width === 0 || (characters === '' && goesOn && x === row.length - 1)) continue
    const shown = characters === '' ? ' ' : characters
    text += shown
    for (let unit = 0; unit < shown.length; unit += 1) places.push({ from: x + 1, to: x + width, y: y + 1 })
  }
  return { text, places }
}

/** The logical line that a row belongs to, within limits; rows are counted from 0. */
export function readLine(rows: Rows, y: number): PositionedText {
  let first = y
  const maxRows = Math.ceil(MAX_LINE_CHARS / (rows.getLine(y)?.length ?? 1))
  while (first > y - maxRows && rows.getLine(first)?.isWrapped === true) first -= 1
  let line: PositionedText = { text: '', places: [] }
  for (let at = first; at < first + maxRows; at += 1) {
    const row = rows.getLine(at)
    if (row === undefined || (at > first && !row.isWrapped)) break
    line = addRow(line, row, at, rows.getLine(at + 1)?.isWrapped === true)
  }
  return line
}

/** Pointer events on a path. */
interface PathEvents extends Required<Pick<ILink, 'hover' | 'leave'>> {
  readonly activate: (event: MouseEvent, place: FileLocation) => void
}

interface PathLinks extends PathEvents {
  /** True when the page opens files; otherwise paths are plain text. */
  readonly opensFiles: () => boolean
}

/** Makes paths in a terminal clickable. */
export function fileLinks(
  terminal: { readonly buffer: { readonly active: Rows } },
  { opensFiles, ...events }: PathLinks,
): ILinkProvider {
  return {
    provideLinks(y, callback) {
      callback(opensFiles() ? linksIn(readLine(terminal.buffer.active, y - 1), events) : undefined)
    },
  }
}

function linksIn({ text, places }: PositionedText, { activate, ...pointer }: PathEvents): ILink[] {
  return findFileLocations(text).flatMap(({ at, length, place }) => {
    const [start, end] = [places[at], places[at + length - 1]]
    if (start === undefined || end === undefined) return []
    return [
      {
        range: { start: { x: start.from, y: start.y }, end: { x: end.to, y: end.y } },
        text: text.slice(at, at + length),
        activate: (event: MouseEvent) => activate(event, place),
        ...pointer,
      },
    ]
  })
}

/** Maximum length of a reported directory. */
const MAX_CHARS = 4096

/** Parses OSC 7, `file://host/path`; undefined when it is invalid. */
export function parseWorkingDirectory(data: string): string | undefined {
  const [, path] = /^file:\/\/[^/]*(\/.*)$/su.exec(data) ?? []
  if (path === undefined || path.length > MAX_CHARS) return undefined
  try {
    return decodeURIComponent(path)
  } catch {
    // Not percent-encoded.
    return path
  }
}
