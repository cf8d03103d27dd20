import type { IBufferCell, ILink, ILinkProvider } from '@xterm/xterm'

/** A place in a file, as compilers and tools print it. */
export interface FileLocation {
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

/** As much of a line of a terminal as is read here. */
interface Row {
  readonly length: number
  /** It goes on with what did not fit into the one above. */
  readonly isWrapped: boolean
  getCell(x: number): Pick<IBufferCell, 'getWidth' | 'getChars'> | undefined
}

/** As much of a terminal's lines as is read here. */
interface Rows {
  getLine(y: number): Row | undefined
}

/** Cells that a character stands in, counted from 1. */
interface Place {
  readonly from: number
  readonly to: number
  readonly y: number
}

/** Text, and for each of its characters where it stands. */
interface PositionedText {
  readonly text: string
  readonly places: readonly Place[]
}

/** Adds a row to the text before it. */
function addRow(before: PositionedText, row: Row, y: number, goesOn: boolean): PositionedText {
  let { text } = before
  const places = [...before.places]
  for (let x = 0; x < row.length; x += 1) {
    const cell = row.getCell(x)
    const width = cell?.getWidth() ?? 1
    const characters = cell?.getChars() ?? ''
    // The second half of a wide character, or the room where one did not fit and went to the next row.
    if (width === 0 || (characters === '' && goesOn && x === row.length - 1)) continue
    const shown = characters === '' ? ' ' : characters
    text += shown
    for (let unit = 0; unit < shown.length; unit += 1) places.push({ from: x + 1, to: x + width, y: y + 1 })
  }
  return { text, places }
}

/** The line that a row is part of, with the rows that it goes on in, as far as it is looked at; rows are counted from 0. */
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

/** What is done with the pointer on a path. */
interface PathEvents extends Required<Pick<ILink, 'hover' | 'leave'>> {
  readonly activate: (event: MouseEvent, place: FileLocation) => void
}

interface PathLinks extends PathEvents {
  /** Whether anybody opens files at present; else paths are text. */
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

/** Longest folder that is believed. */
const MAX_CHARS = 4096

/** The folder in what a shell says with OSC 7: `file://machine/folder`; undefined for anything else. */
export function parseWorkingDirectory(data: string): string | undefined {
  const [, path] = /^file:\/\/[^/]*(\/.*)$/su.exec(data) ?? []
  if (path === undefined || path.length > MAX_CHARS) return undefined
  try {
    return decodeURIComponent(path)
  } catch {
    // Said without being encoded.
    return path
  }
}
