import { describe, expect, test } from 'bun:test'
import { type BubblewrapFacts, installBubblewrap, planBubblewrap } from './install-bubblewrap.ts'

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
  function record(answers: readonly boolean[]): {
    ran: string[]
    run: (argv: readonly string[]) => Promise<boolean>
  } {
    const ran: string[] = []
    return {
      ran,
      run: async (argv) => {
        ran.push(argv[1] ?? '')
        return answers[ran.length - 1] ?? false
      },
    }
  }

  test('fetches package lists only when it must', async () => {
    const first = record([true])
    expect([await installBubblewrap(first.run), first.ran]).toEqual([true, ['install']])
    const second = record([false, true, true])
    expect([await installBubblewrap(second.run), second.ran]).toEqual([
      true,
      ['install', 'update', 'install'],
    ])
  })

  test('says so when it cannot', async () => {
    expect(await installBubblewrap(record([]).run)).toBe(false)
  })
})
