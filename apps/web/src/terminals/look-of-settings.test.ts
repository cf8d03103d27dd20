import { expect, test } from 'bun:test'
import { DARK, DEFAULT_LOOK, LIGHT } from '@sandwire/react'
import { DEFAULT_SETTINGS } from '../state/settings.ts'
import { lookOfSettings } from './look-of-settings.ts'

test('terminals look as was chosen, on the ground of the page', () => {
  const settings = { ...DEFAULT_SETTINGS, fontFamily: 'Hack', fontSize: 20, screenReader: true }
  const chosen = { fontFamily: 'Hack, monospace', fontSize: 20, screenReader: true }
  expect(lookOfSettings(settings, true)).toMatchObject({ ...chosen, palette: DARK })
  expect(lookOfSettings(settings, false)).toMatchObject({ ...chosen, palette: LIGHT })
})

test('a font that is no longer chosen gives way to the usual one', () => {
  const before = lookOfSettings({ ...DEFAULT_SETTINGS, fontFamily: 'Hack' }, true)
  const after = lookOfSettings({ ...DEFAULT_SETTINGS, fontFamily: '' }, true)
  // A look is laid over the one before it.
  expect({ ...before, ...after }).toEqual(DEFAULT_LOOK)
})
