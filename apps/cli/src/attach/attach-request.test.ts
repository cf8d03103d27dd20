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

test('collectEnv sends the variables of the terminal in PTY mode only', () => {
  expect(collectEnv(OWN, [], true)).toEqual({ TERM: 'xterm', COLORTERM: 'truecolor', LANG: 'C', LC_ALL: 'C' })
  expect(collectEnv(OWN, [], false)).toEqual({})
})

test('collectEnv adds requested variables, copies by name, and omits unset ones', () => {
  const requested = [
    ['A', 'x'],
    ['HOME', undefined],
    ['NOPE', undefined],
    ['TERM', 'vt100'],
    ['E', ''],
  ] as const
  expect(collectEnv({ TERM: 'xterm', HOME: '/h' }, requested, true)).toEqual({
    TERM: 'vt100',
    A: 'x',
    HOME: '/h',
    E: '',
  })
})

test('collectEnv sends a variable named __proto__', () => {
  expect(JSON.stringify(collectEnv({}, [['__proto__', 'x']], false))).toBe('{"__proto__":"x"}')
  expect(collectEnv({}, [['__proto__', undefined]], false)).toEqual({})
})
