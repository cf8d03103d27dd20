import { type ExtendedAttributes, readExtendedAttributes, type Styled } from './screen-internals.ts'

const DEFAULT = '\x1b[m'
const CLOSED_LINK = ';'
/** A color is a mode and a value in one number, as in a cell. */
const MODE = 0x0300_0000
const PALETTE_16 = 0x0100_0000
const PALETTE_256 = 0x0200_0000

/**
 * Tracks the current style of a terminal and returns the sequences that change it. Each sequence sets the complete style, so
 * that it does not depend on its position.
 */
export class Pen {
  readonly #linkOf: (link: number) => string | undefined
  readonly #isPlain: boolean
  #fg = 0
  #bg = 0
  #flags = 0
  #extras: ExtendedAttributes | undefined
  #link = CLOSED_LINK

  /** A plain pen returns no sequences. */
  constructor(linkOf: (link: number) => string | undefined, isPlain = false) {
    this.#linkOf = linkOf
    this.#isPlain = isPlain
  }

  /** Changes to the style of a cell. */
  take(styled: Styled): string {
    if (styled.isAttributeDefault()) return this.reset()
    const extras = readExtendedAttributes(styled)
    const flags = extras?.isUnderlined === false ? flagsOf(styled) & ~UNDERLINE : flagsOf(styled)
    return this.#change(foregroundOf(styled), backgroundOf(styled), flags, extras)
  }

  /** Changes to a background color alone, for erasing. */
  takeBackground(background: number): string {
    return this.#change(0, background, 0, undefined)
  }

  reset(): string {
    return this.#change(0, 0, 0, undefined)
  }

  #change(fg: number, bg: number, flags: number, extras: ExtendedAttributes | undefined): string {
    const isSame =
      fg === this.#fg && bg === this.#bg && flags === this.#flags && areEqual(extras, this.#extras)
    if (isSame || this.#isPlain) return ''
    const wasProtected = this.#extras?.isProtected ?? false
    this.#fg = fg
    this.#bg = bg
    this.#flags = flags
    this.#extras = extras
    return this.#rendition() + this.#protection(wasProtected) + this.#openLink(extras?.link ?? 0)
  }

  #rendition(): string {
    const codes = [...colorCodes(this.#fg, 30), ...colorCodes(this.#bg, 40)]
    for (const [index, code] of FLAG_CODES.entries()) if ((this.#flags & (1 << index)) !== 0) codes.push(code)
    const style = this.#extras?.underlineStyle ?? 0
    if (style > 1 && (this.#flags & UNDERLINE) !== 0) codes.push(`4:${style}`)
    codes.push(...underlineCodes(this.#extras?.underlineColor ?? 0))
    return codes.length === 0 ? DEFAULT : `\x1b[0;${codes.join(';')}m`
  }

  #protection(wasProtected: boolean): string {
    const isProtected = this.#extras?.isProtected ?? false
    if (isProtected) return '\x1b[1"q'
    return wasProtected ? '\x1b[0"q' : ''
  }

  #openLink(number: number): string {
    const link = this.#linkOf(number) ?? CLOSED_LINK
    if (link === this.#link) return ''
    this.#link = link
    return `\x1b]8;${link}\x1b\\`
  }
}

/** Codes that set the flags, from the lowest bit. */
const FLAG_CODES: readonly string[] = ['1', '2', '3', '4', '5', '7', '8', '9', '53']
const UNDERLINE = 8

/** Called for every styled cell, so it avoids loops and allocations. */
function flagsOf(styled: Styled): number {
  return (
    (styled.isBold() === 0 ? 0 : 1) |
    (styled.isDim() === 0 ? 0 : 2) |
    (styled.isItalic() === 0 ? 0 : 4) |
    (styled.isUnderline() === 0 ? 0 : UNDERLINE) |
    (styled.isBlink() === 0 ? 0 : 16) |
    (styled.isInverse() === 0 ? 0 : 32) |
    (styled.isInvisible() === 0 ? 0 : 64) |
    (styled.isStrikethrough() === 0 ? 0 : 128) |
    (styled.isOverline() === 0 ? 0 : 256)
  )
}

/** True when an empty cell has more style than a background color. */
export function hasMoreThanBackground(styled: Styled): boolean {
  if (styled.isAttributeDefault()) return false
  return foregroundOf(styled) !== 0 || flagsOf(styled) !== 0 || readExtendedAttributes(styled) !== undefined
}

function foregroundOf(styled: Styled): number {
  const mode = styled.getFgColorMode()
  return mode === 0 ? 0 : mode | styled.getFgColor()
}

/** 0 for the terminal's default. */
export function backgroundOf(styled: Styled): number {
  const mode = styled.getBgColorMode()
  return mode === 0 ? 0 : mode | styled.getBgColor()
}

function areEqual(one: ExtendedAttributes | undefined, other: ExtendedAttributes | undefined): boolean {
  if (one === other) return true
  return (
    one !== undefined &&
    other !== undefined &&
    one.link === other.link &&
    one.isProtected === other.isProtected &&
    one.underlineStyle === other.underlineStyle &&
    one.underlineColor === other.underlineColor
  )
}

/** `base` is 30 for the foreground, 40 for the background. */
function colorCodes(color: number, base: number): string[] {
  const [mode, value] = [color & MODE, color & ~MODE]
  if (mode === 0) return []
  if (mode === PALETTE_16) return [String(value < 8 ? base + value : base + 60 + value - 8)]
  if (mode === PALETTE_256) return [`${base + 8};5;${value}`]
  return [`${base + 8};2;${value >> 16};${(value >> 8) & 255};${value & 255}`]
}

/** Sets the underline color, with or without an underline. */
export function underlineColorSequence(color: number): string {
  return underlineCodes(color)
    .map((code) => `\x1b[${code}m`)
    .join('')
}

function underlineCodes(color: number): string[] {
  const [mode, value] = [color & MODE, color & ~MODE]
  if (mode === 0) return []
  if (mode === PALETTE_16 || mode === PALETTE_256) return [`58:5:${value}`]
  return [`58:2::${value >> 16}:${(value >> 8) & 255}:${value & 255}`]
}
