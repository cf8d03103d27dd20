import { expect, test } from 'bun:test'
import type { SearchEnd, SearchMatch, SearchQuery } from '../api/search.ts'
import { Search } from './search.ts'

const match = (line: number): SearchMatch => ({ type: 'match', path: 'f', line, text: 'x', ranges: [[0, 1]] })
const end: SearchEnd = { type: 'end', matches: 1, files: 1, truncated: false }

/** A search whose delay ends when the test says so. */
function open(answer: (query: SearchQuery, signal: AbortSignal) => AsyncGenerator<SearchMatch | SearchEnd>): {
  search: Search
  endDelay: () => void
} {
  const waiting = new Set<() => void>()
  const search = new Search(answer, (run) => {
    waiting.add(run)
    return () => waiting.delete(run)
  })
  const endDelay = (): void => {
    for (const run of waiting) run()
    waiting.clear()
  }
  return { search, endDelay }
}

async function isOver(search: Search): Promise<void> {
  while (search.result.get().outcome.kind === 'searching') await Promise.resolve()
}

test('starts when typing pauses, and keeps query and matches', async () => {
  const queries: SearchQuery[] = []
  const { search, endDelay } = open(async function* (query) {
    queries.push(query)
    yield match(1)
    yield end
  })
  search.change({ q: 'n' })
  search.change({ q: 'ne', glob: '*.ts, !b' })
  search.change({ includesHiddenAndIgnored: true, isCaseSensitive: true })
  endDelay()
  await isOver(search)
  expect(queries).toEqual([
    { q: 'ne', regex: false, case: 'sensitive', glob: ['*.ts', '!b'], hidden: true, ignored: true },
  ])
  expect(search.form.get()).toMatchObject({ q: 'ne', glob: '*.ts, !b', includesHiddenAndIgnored: true })
  expect(search.result.get()).toEqual({
    groups: [{ path: 'f', matches: [match(1)] }],
    outcome: { kind: 'done', end },
  })
  search.resume()
  endDelay()
  expect(queries).toHaveLength(1)
  search.change({ q: '' })
  endDelay()
  expect(search.result.get()).toEqual({ groups: [], outcome: { kind: 'idle' } })
})

test('cancels the previous one, which reports nothing more', async () => {
  const gate = Promise.withResolvers<void>()
  const signals: AbortSignal[] = []
  const { search, endDelay } = open(async function* ({ q }, signal) {
    signals.push(signal)
    if (q === 'old') await gate.promise
    yield match(q === 'old' ? 1 : 2)
    yield end
  })
  search.change({ q: 'old' })
  endDelay()
  search.change({ q: 'new' })
  expect(signals[0]?.aborted).toBe(true)
  endDelay()
  await isOver(search)
  gate.resolve()
  await new Promise((resolve) => setTimeout(resolve, 0))
  expect(search.result.get()).toEqual({
    groups: [{ path: 'f', matches: [match(2)] }],
    outcome: { kind: 'done', end },
  })
})

test('is retried when the panel is shown again after a failure', async () => {
  let isBroken = true
  const { search, endDelay } = open(async function* () {
    if (isBroken) throw new Error('no answer')
    yield end
  })
  search.change({ q: 'x' })
  endDelay()
  await isOver(search)
  expect(search.result.get().outcome).toEqual({ kind: 'failed', message: 'no answer' })
  isBroken = false
  search.resume()
  endDelay()
  await isOver(search)
  expect(search.result.get().outcome).toEqual({ kind: 'done', end })
})

test('keeps a bounded number of matches', async () => {
  const { search, endDelay } = open(async function* () {
    for (let line = 0; line < 5_000; line += 1) yield match(line)
  })
  search.change({ q: 'x' })
  endDelay()
  await isOver(search)
  expect(search.result.get().groups[0]?.matches).toHaveLength(2_000)
  expect(search.result.get().outcome).toEqual({ kind: 'done', end: undefined })
})
