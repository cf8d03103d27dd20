import { type IBufferCell, Terminal } from '@xterm/headless'

/**
 * Reads private state of xterm.js that its public API does not expose: margins, tab stops, saved cursors, character sets,
 * the style of the next character, hyperlinks. Each part is checked before use; a missing one counts as its default.
 */

/** Has text attributes: a cell, or the style of the next character. */
export type Styled = Omit<IBufferCell, 'getWidth' | 'getChars' | 'getCode'>

export interface SavedCursor {
  readonly x: number
  /** Counted from the first line of the scrollback. */
  readonly y: number
  readonly style: Styled | undefined
  /** The final byte that designates its character set. */
  readonly charset: string
}

/** State that the normal and the alternate screen have separately. */
export interface ScreenState {
  /** First and last row of the scroll region, counted from 0; undefined when it is the whole screen. */
  readonly region: { readonly top: number; readonly bottom: number } | undefined
  /** Columns; undefined for the default of every eighth. */
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

/** Attributes that the public cell API does not expose. */
export interface ExtendedAttributes {
  /** Underlined by itself, not only because it is a hyperlink. */
  readonly isUnderlined: boolean
  readonly underlineStyle: number
  /** Mode and color as in a cell; 0 for none. */
  readonly underlineColor: number
  readonly isProtected: boolean
  /** Id of a hyperlink; 0 for none. */
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

/** A nested property, or undefined. */
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

export function readScreenState(terminal: Terminal, which: 'normal' | 'alternate'): ScreenState {
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
  // A stop in column 0 has no effect.
  const isDefault = columns.slice(1).every((column) => isSet(column) === (column % TAB_WIDTH === 0))
  return isDefault ? undefined : columns.filter(isSet)
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

/** Character sets are identified by object identity: a scratch terminal selects each, and its object is read. */
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

/** Style of the next character. */
export function readNextStyle(terminal: Terminal): Styled | undefined {
  const style = inner(terminal, '_core', '_inputHandler', '_curAttrData')
  return isStyled(style) ? style : undefined
}

/** Underline color of the next character; it may be set without an underline. */
export function readNextUnderlineColor(terminal: Terminal): number {
  return underlineColor(inner(terminal, '_core', '_inputHandler', '_curAttrData', 'extended'))
}

/** True when a combining mark would join the character before the cursor. */
export function isAfterCharacter(terminal: Terminal): boolean {
  return wholeOf(terminal, '_core', '_inputHandler', '_parser', 'precedingJoinState') !== 0
}

export function readExtendedAttributes(styled: Styled): ExtendedAttributes | undefined {
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
  // The bits above a palette index may be left over from an earlier color.
  return color < RGB ? color & ~0x00ff_ff00 : color
}

/** Parameters and address of a hyperlink, as in its OSC 8 sequence. */
export function readLink(terminal: Terminal, link: number): string | undefined {
  const service = inner(terminal, '_core', '_oscLinkService')
  const getLinkData = inner(service, 'getLinkData')
  if (link === 0 || typeof getLinkData !== 'function') return undefined
  const data: unknown = Reflect.apply(getLinkData, service, [link])
  const [uri, id] = [inner(data, 'uri'), inner(data, 'id')]
  return typeof uri === 'string' ? `${typeof id === 'string' ? `id=${id}` : ''};${uri}` : undefined
}
