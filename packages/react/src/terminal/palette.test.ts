import { expect, test } from 'bun:test'
import { DARK, LIGHT, MIN_CONTRAST } from './palette.ts'

function luminanceOf(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrastOf(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((a, b) => b - a)
  return (light + 0.05) / (dark + 0.05)
}

test.each([
  ['dark', DARK],
  ['light', LIGHT],
])('every colour of text can be read on the ground, %s', (_, palette) => {
  const { background = '', selectionBackground, cursorAccent, cursor, ...texts } = palette
  for (const [name, colour] of Object.entries(texts))
    expect([name, contrastOf(String(colour), background) >= MIN_CONTRAST]).toEqual([name, true])
  expect(contrastOf(texts.foreground ?? '', selectionBackground ?? '')).toBeGreaterThan(MIN_CONTRAST)
  expect(contrastOf(cursor ?? '', cursorAccent ?? '')).toBeGreaterThan(MIN_CONTRAST)
})
