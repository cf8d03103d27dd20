import { expect, test } from 'bun:test'
import { activateTab, closeTab, EMPTY, openTab } from '../layout/layout.ts'
import { Bells } from './bells.ts'

let minted = 0
const mint = () => `i${(minted += 1)}`
const terminal = { kind: 'terminal', sandbox: 'dev' } as const
const both = openTab(openTab(EMPTY, terminal, mint), terminal, mint)
const [back, front] = both.tabs
const rungAfter = (bells: Bells) => [...bells.rung.get()]

test('marks a bell in an inactive pane until it is visible', () => {
  const bells = new Bells()
  bells.ring(both, front?.focus ?? '')
  expect(rungAfter(bells)).toEqual([])
  bells.ring(both, back?.focus ?? '')
  bells.seen(both)
  expect(rungAfter(bells)).toEqual([back?.focus ?? ''])
  bells.seen(activateTab(both, back?.id ?? ''))
  expect(rungAfter(bells)).toEqual([])
})

test('forgets closed panes', () => {
  const bells = new Bells()
  bells.ring(both, back?.focus ?? '')
  bells.seen(closeTab(both, back?.id ?? ''))
  expect(rungAfter(bells)).toEqual([])
})
