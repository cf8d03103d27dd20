import { describe, expect, test } from 'bun:test'
import { type BubblewrapFacts, findReason, installBubblewrap, planBubblewrap } from './install-bubblewrap.ts'

const BARE: BubblewrapFacts = { wanted: undefined, isInstalled: false, isRoot: false, hasApt: false }

describe('planBubblewrap', () => {
  test.each([
    [{ isInstalled: true }, 'use'],
    [{ isInstalled: true, wanted: 'none' }, 'without'],
    [{ isRoot: true, hasApt: true }, 'install'],
    [{ isRoot: true, hasApt: true, wanted: 'none' }, 'without'],
    [{ hasApt: true }, 'without'],
    [{ isRoot: true }, 'without'],
    [{ hasApt: true, wanted: 'bubblewrap' }, 'refuse'],
    [{ isRoot: true, hasApt: true, wanted: 'bubblewrap' }, 'install'],
  ] as const)('%j: %s', (facts, kind) => {
    expect(planBubblewrap({ ...BARE, ...facts }).kind).toBe(kind)
  })
})

describe('installBubblewrap', () => {
  function record(answers: readonly (string | undefined)[]): {
    ran: string[]
    run: (argv: readonly string[]) => Promise<string | undefined>
  } {
    const ran: string[] = []
    return {
      ran,
      run: async (argv) => {
        ran.push(argv[1] ?? '')
        return answers[ran.length - 1]
      },
    }
  }

  test('updates package lists only if needed', async () => {
    const first = record([undefined])
    expect([await installBubblewrap(first.run), first.ran]).toEqual([undefined, ['install']])
    const second = record(['no such package', undefined, undefined])
    expect([await installBubblewrap(second.run), second.ran]).toEqual([
      undefined,
      ['install', 'update', 'install'],
    ])
  })

  test('reports why it failed', async () => {
    expect(await installBubblewrap(record(['a', 'no network']).run)).toBe('no network')
    expect(await installBubblewrap(record(['a', undefined, 'no space']).run)).toBe('no space')
  })
})

test.each([
  ['W: x\nE: Unable to locate package bubblewrap\nE: y\n', 'Unable to locate package bubblewrap'],
  ['E: a\u001b[31m b\n', 'a [31m b'],
  ['', 'apt-get failed'],
])('%j has the reason %s', (output, reason) => {
  expect(findReason(output)).toBe(reason)
})
