import { expect, test } from 'bun:test'
import { collectEnv } from './attach-request.ts'

const OWN = {
  TERM: 'xterm',
  COLORTERM: 'truecolor',
  LANG: 'C',
  LC_ALL: 'C',
  HOME: '/h',
  SBX_TOKEN: 's',
  TERMINFO: 't',
}

test('collectEnv passes on what a terminal program needs, in PTY mode only', () => {
  expect(collectEnv(OWN, [], true)).toEqual({ TERM: 'xterm', COLORTERM: 'truecolor', LANG: 'C', LC_ALL: 'C' })
  expect(collectEnv(OWN, [], false)).toEqual({})
})

test('collectEnv adds what was asked for, copies by name, and leaves out what is not set', () => {
  const asked = [
    ['A', 'x'],
    ['HOME', undefined],
    ['NOPE', undefined],
    ['TERM', 'vt100'],
    ['E', ''],
  ] as const
  expect(collectEnv({ TERM: 'xterm', HOME: '/h' }, asked, true)).toEqual({
    TERM: 'vt100',
    A: 'x',
    HOME: '/h',
    E: '',
  })
})
