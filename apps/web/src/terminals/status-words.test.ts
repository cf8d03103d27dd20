import { expect, test } from 'bun:test'
import { statusWordsOf } from './status-words.ts'

const attached = { is: 'attached', session: 's', role: 'driver' } as const
const driven = { status: attached, role: 'driver', cols: 80, rows: 24, isSilent: false } as const
const textOf = (...wish: Parameters<typeof statusWordsOf>) => statusWordsOf(...wish).map(({ text }) => text)

test('a terminal that is there has a role, a size and a round-trip time', () => {
  expect(textOf(driven, undefined)).toEqual(['In control', '80×24'])
  expect(textOf(driven, 4.321)).toEqual(['In control', '80×24', '4.3 ms'])
  expect(textOf({ ...driven, role: 'viewer' }, 43.21)).toEqual(['View only', '80×24', '43 ms'])
})

test('a server that is silent has no round-trip time', () => {
  expect(textOf({ ...driven, isSilent: true }, 5)).toEqual(['In control', '80×24', 'No response'])
})

test('nobody drives what is not there', () => {
  const lost = { is: 'reconnecting', attempt: 1, atMs: 5, why: 'x' } as const
  expect(textOf({ ...driven, status: lost }, 5)).toEqual(['Disconnected'])
  const exit = { type: 'exit', code: 0, signal: null, outputEnd: 0, truncated: false } as const
  expect(textOf({ ...driven, status: { is: 'exited', exit } }, 5)).toEqual(['Ended'])
})
