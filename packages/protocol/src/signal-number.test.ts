import { expect, test } from 'bun:test'
import { constants } from 'node:os'
import { signalNumber } from './signal-number.ts'

test('[I12] maps Linux signal names to numbers', () => {
  for (const name of [
    'SIGHUP',
    'SIGINT',
    'SIGQUIT',
    'SIGKILL',
    'SIGTERM',
    'SIGUSR1',
    'SIGTSTP',
    'SIGWINCH',
    'SIGSYS',
  ] as const) {
    expect(signalNumber(name)).toBe(constants.signals[name])
  }
})

test.each(['', 'INT', 'sigint', 'SIGNOPE', 'constructor', '__proto__', 'toString'])(
  '[I12] does not know %j',
  (name) => {
    expect(signalNumber(name)).toBeUndefined()
  },
)
