import { DARK, DEFAULT_APPEARANCE, LIGHT } from '@sandwire/react'
import { expect, test } from 'bun:test'
import { DEFAULT_SETTINGS } from '../state/settings.ts'
import { terminalAppearance, shellRequest } from './terminals.ts'

test('terminals follow the settings and the theme', () => {
  const settings = { ...DEFAULT_SETTINGS, fontFamily: 'Hack', fontSize: 20, screenReader: true }
  const chosen = { fontFamily: 'Hack, monospace', fontSize: 20, screenReader: true }
  expect(terminalAppearance(settings, true)).toMatchObject({ ...chosen, palette: DARK })
  expect(terminalAppearance(settings, false)).toMatchObject({ ...chosen, palette: LIGHT })
})

test('a reset font setting restores the default font', () => {
  const before = terminalAppearance({ ...DEFAULT_SETTINGS, fontFamily: 'Hack' }, true)
  const after = terminalAppearance({ ...DEFAULT_SETTINGS, fontFamily: '' }, true)
  // Appearances are merged over the previous one.
  expect({ ...before, ...after }).toEqual(DEFAULT_APPEARANCE)
})

const NIGHT_SECONDS = 43_200

test('a new shell is kept for 12 hours without a page', () => {
  expect(shellRequest({ kind: 'terminal', sandbox: 'dev' })).toEqual({
    sandbox: 'dev',
    keepSeconds: NIGHT_SECONDS,
  })
  const clone = { cmd: 'sh', args: ['-c', 'git clone'] }
  expect(shellRequest({ kind: 'terminal', sandbox: 'dev', cwd: 'src', hadControl: true }, clone)).toEqual({
    sandbox: 'dev',
    cwd: 'src',
    keepSeconds: NIGHT_SECONDS,
    ...clone,
  })
})

test('joining a session requests nothing for a new one', () => {
  const place = { kind: 'terminal', sandbox: 'dev', session: 's', cwd: 'src' } as const
  expect(shellRequest(place)).toEqual({ sandbox: 'dev', session: 's' })
})
