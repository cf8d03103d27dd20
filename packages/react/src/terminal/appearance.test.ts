import { expect, test } from 'bun:test'
import { XtermSettings, DARK, DEFAULT_APPEARANCE, LIGHT, MIN_CONTRAST } from './appearance.ts'

function luminanceOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrastOf(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((a, b) => b - a)
  return (light + 0.05) / (dark + 0.05)
}

/** Black and white are exempt: the terminal corrects their contrast when drawing. */
const ENDS = { dark: ['black'], light: ['white', 'brightWhite'] }

test.each([
  ['dark', DARK],
  ['light', LIGHT],
] as const)('every text color is readable on the background, %s', (theme, palette) => {
  const { background = '', selectionBackground, cursorAccent, cursor, ...texts } = palette
  for (const [name, color] of Object.entries(texts).filter(([name]) => !ENDS[theme].includes(name)))
    expect([name, contrastOf(String(color), background) >= MIN_CONTRAST]).toEqual([name, true])
  expect(contrastOf(texts.foreground ?? '', selectionBackground ?? '')).toBeGreaterThan(MIN_CONTRAST)
  expect(contrastOf(cursor ?? '', cursorAccent ?? '')).toBeGreaterThan(MIN_CONTRAST)
})

test.each([
  ['dark', DARK],
  ['light', LIGHT],
] as const)('black is dark and white is light, %s', (_, palette) => {
  const { black = '', brightBlack = '', white = '', brightWhite = '' } = palette
  expect(luminanceOf(black)).toBeLessThan(0.03)
  expect(luminanceOf(white)).toBeGreaterThan(0.55)
  expect(luminanceOf(brightBlack)).toBeGreaterThan(luminanceOf(black))
  expect(luminanceOf(brightWhite)).toBeGreaterThan(luminanceOf(white))
  expect(contrastOf(black, white)).toBeGreaterThan(10)
})

test('uses defaults for what is not given', () => {
  expect(new XtermSettings({ fontSize: 20 }).appearance).toEqual({ ...DEFAULT_APPEARANCE, fontSize: 20 })
})

test('changes only the given part', () => {
  const appearance = new XtermSettings({ fontSize: 20, cursorBlink: false })
  appearance.change({ palette: LIGHT })
  expect(appearance.appearance).toEqual({
    ...DEFAULT_APPEARANCE,
    fontSize: 20,
    cursorBlink: false,
    palette: LIGHT,
  })
  expect(appearance.options).toMatchObject({ theme: LIGHT, fontSize: 20, screenReaderMode: false })
})

test('never blinks the cursor when that is off', () => {
  const appearance = new XtermSettings({ cursorBlink: false })
  appearance.isReadOnly = true
  appearance.isReadOnly = false
  expect(appearance.options).toMatchObject({ disableStdin: false, cursorBlink: false })
})

test('blinks the cursor only when input is possible, also after a change', () => {
  const appearance = new XtermSettings({})
  expect(appearance.options).toMatchObject({ disableStdin: false, cursorBlink: true })
  appearance.isReadOnly = true
  appearance.change({ fontSize: 20 })
  expect(appearance.options).toMatchObject({ disableStdin: true, cursorBlink: false })
  appearance.isReadOnly = false
  expect(appearance.options).toMatchObject({ disableStdin: false, cursorBlink: true })
})
