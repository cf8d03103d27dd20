import { type IBufferCell, Terminal } from '@xterm/headless'

/**
 * Looks behind the public face of xterm.js, for what a terminal remembers and nothing public tells: margins, tab
 * stops, saved cursors, character sets, the colors that come next, links. Each part is looked at before it is believed; without
 * it the terminal counts as one that was never told anything.
 */

/** What can be asked how it is written: a cell, or what comes next. */
export type Styled = Omit<IBufferCell, 'getWidth' | 'getChars' | 'getCode'>

export interface SavedCursor {
  readonly x: number
  /** Counted from the first line of the scrollback. */
  readonly y: number
  readonly style: Styled | undefined
  /** The final byte that designates its character set. */
  readonly charset: string
}

/** What each of the two screens has for itself. */
export interface ScreenMemory {
  /** First and last row that scroll, counted from 0; undefined where all do. */
  readonly region: { readonly top: number; readonly bottom: number } | undefined
  /** Columns; undefined where they are every eight. */
  readonly tabStops: readonly number[] | undefined
  readonly saved: SavedCursor
}

export interface Charsets {
  /** Final bytes that designate G0 to G3. */
  readonly designated: readonly string[]
  /** Which of them is shifted in. */
  readonly level: number
  readonly active: string
}

/** How a cell is written, beyond what the public cell tells. */
export interface Extras {
  /** Told apart from the line that every link is said to have. */
  readonly isUnderlined: boolean
  readonly underlineStyle: number
  /** Mode and color as in a cell; 0 for none. */
  readonly underlineColor: number
  readonly isProtected: boolean
  /** Number of a hyperlink; 0 for none. */
  readonly link: number
}

const TAB_WIDTH = 8
const ASCII = 'B'
const DESIGNATIONS = '0A45RQKYE6ZH7=C'
const IS_UNDERLINED = 0x1000_0000
const HAS_EXTENDED = 0x1000_0000
const IS_PROTECTED = 0x2000_0000
const COLOR = 0x03ff_ffff
const RGB = 0x0300_0000
const UNDERLINE_STYLE_SHIFT = 26

/** A part by its path, or undefined where there is none. */
export function inner(of: unknown, ...path: readonly string[]): unknown {
  let found = of
  for (const name of path)
    found = typeof found === 'object' && found !== null ? Reflect.get(found, name) : undefined
  return found
}

function wholeOf(of: unknown, ...path: readonly string[]): number {
  const found = inner(of, ...path)
  return typeof found === 'number' && Number.isInteger(found) ? found : 0
}

function isStyled(value: unknown): value is Styled {
  return (
    typeof inner(value, 'getFgColorMode') === 'function' && typeof inner(value, 'isOverline') === 'function'
  )
}

export function readScreenMemory(terminal: Terminal, which: 'normal' | 'alternate'): ScreenMemory {
  const name = which === 'normal' ? 'normal' : 'alt'
  const buffer = inner(terminal, '_core', '_bufferService', 'buffers', name)
  const [top, bottom] = [wholeOf(buffer, 'scrollTop'), wholeOf(buffer, 'scrollBottom')]
  const isRegion = bottom > top && (top > 0 || bottom < terminal.rows - 1)
  const style = inner(buffer, 'savedCurAttrData')
  return {
    region: isRegion ? { top, bottom } : undefined,
    tabStops: tabStopsOf(inner(buffer, 'tabs'), terminal.cols),
    saved: {
      x: Math.min(wholeOf(buffer, 'savedX'), terminal.cols - 1),
      y: wholeOf(buffer, 'savedY'),
      style: isStyled(style) ? style : undefined,
      charset: charsetName(inner(buffer, 'savedCharset')),
    },
  }
}

function tabStopsOf(tabs: unknown, cols: number): readonly number[] | undefined {
  if (typeof tabs !== 'object' || tabs === null) return undefined
  const columns = Array.from({ length: cols }, (_, column) => column)
  const isSet = (column: number): boolean => Reflect.get(tabs, String(column)) === true
  // Tabs never lead to column 0 from the left, and to it from the right also without a stop.
  const isUsual = columns.slice(1).every((column) => isSet(column) === (column % TAB_WIDTH === 0))
  return isUsual ? undefined : columns.filter(isSet)
}

export function readCharsets(terminal: Terminal): Charsets {
  const service = inner(terminal, '_core', '_charsetService')
  return {
    designated: ['0', '1', '2', '3'].map((level) => charsetName(inner(service, '_charsets', level))),
    level: wholeOf(service, 'glevel'),
    active: charsetName(inner(service, 'charset')),
  }
}

let charsetNames: ReadonlyMap<unknown, string> | undefined

/** Character sets are known by identity: a terminal of its own is told each, and looked at. */
function charsetName(charset: unknown): string {
  if (charset === undefined) return ASCII
  charsetNames ??= learnCharsetNames()
  return charsetNames.get(charset) ?? ASCII
}

function learnCharsetNames(): ReadonlyMap<unknown, string> {
  const names = new Map<unknown, string>()
  const terminal = new Terminal({ cols: 2, rows: 1, allowProposedApi: true })
  const handler = inner(terminal, '_core', '_inputHandler')
  const parse = inner(handler, 'parse')
  if (typeof parse !== 'function') return names
  for (const name of DESIGNATIONS) {
    Reflect.apply(parse, handler, [`\x1b(${name}`])
    names.set(inner(terminal, '_core', '_charsetService', 'charset'), name)
  }
  terminal.dispose()
  return names
}

/** How the next character will be written. */
export function readNextStyle(terminal: Terminal): Styled | undefined {
  const style = inner(terminal, '_core', '_inputHandler', '_curAttrData')
  return isStyled(style) ? style : undefined
}

/** The color of a line below what is written next; it may be set while there is no line. */
export function readNextUnderlineColor(terminal: Terminal): number {
  return underlineColor(inner(terminal, '_core', '_inputHandler', '_curAttrData', 'extended'))
}

/** Whether the last thing that came was a character: a combining mark would join it. */
export function isAfterCharacter(terminal: Terminal): boolean {
  return wholeOf(terminal, '_core', '_inputHandler', '_parser', 'precedingJoinState') !== 0
}

export function readExtras(styled: Styled): Extras | undefined {
  const bg = wholeOf(styled, 'bg')
  if ((bg & (HAS_EXTENDED | IS_PROTECTED)) === 0) return undefined
  const extended = (bg & HAS_EXTENDED) === 0 ? undefined : inner(styled, 'extended')
  return {
    isUnderlined: (wholeOf(styled, 'fg') & IS_UNDERLINED) !== 0,
    underlineStyle: (wholeOf(extended, '_ext') >> UNDERLINE_STYLE_SHIFT) & 7,
    underlineColor: underlineColor(extended),
    isProtected: (bg & IS_PROTECTED) !== 0,
    link: wholeOf(extended, 'urlId'),
  }
}

function underlineColor(extended: unknown): number {
  const color = wholeOf(extended, '_ext') & COLOR
  // Above the number in a palette are remains of colors before.
  return color < RGB ? color & ~0x00ff_ff00 : color
}

/** The parameters and the address of a hyperlink, as they stand in the sequence that opens it. */
export function readLink(terminal: Terminal, link: number): string | undefined {
  const service = inner(terminal, '_core', '_oscLinkService')
  const getLinkData = inner(service, 'getLinkData')
  if (link === 0 || typeof getLinkData !== 'function') return undefined
  const data: unknown = Reflect.apply(getLinkData, service, [link])
  const [uri, id] = [inner(data, 'uri'), inner(data, 'id')]
  return typeof uri === 'string' ? `${typeof id === 'string' ? `id=${id}` : ''};${uri}` : undefined
}
