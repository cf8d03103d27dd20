import { afterEach, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { JournalFile } from './journal-file.ts'

let folder = ''
const file = (): string => path.join(folder, 'journal')
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'journal-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const stdout = (data: string, atMs: number): { atMs: number; event: { type: string; data: string } } => ({
  atMs,
  event: { type: 'stdout', data },
})
const seqs = (journal: JournalFile, after: number, max = 1_000, bytes = 1e9): readonly number[] =>
  journal.read(after, max, bytes).map(({ seq }) => seq)

test('numbers entries from 1, and reads them from any place', () => {
  using journal = new JournalFile(file())
  for (let count = 0; count < 300; count += 1) journal.append(stdout(`line ${count} é`, count))
  expect(journal.lastSeq).toBe(300)
  for (const after of [0, 1, 63, 64, 65, 127, 299]) expect(seqs(journal, after)[0]).toBe(after + 1)
  expect(seqs(journal, 300)).toEqual([])
  expect(seqs(journal, 1_000)).toEqual([])
  expect(seqs(journal, 10, 3)).toEqual([11, 12, 13])
  expect(seqs(journal, 10, 100, 1)).toEqual([11])
  expect(statSync(file()).mode & 0o777).toBe(0o600)
})

test('continues after a restart, without what a crash left of the last line', () => {
  {
    using journal = new JournalFile(file())
    for (let count = 0; count < 100; count += 1) journal.append(stdout(String(count), count))
  }
  const whole = readFileSync(file(), 'utf8')
  for (const rest of [
    '{"seq":101,"atMs":1,"event":{"type":"std',
    '{"seq":101',
    '\0\0\0\n',
    '{"seq":200,"atMs":1,"event":{"type":"stdout"}}\n',
  ]) {
    appendFileSync(file(), rest)
    using journal = new JournalFile(file())
    expect(journal.lastSeq).toBe(100)
    expect(readFileSync(file(), 'utf8')).toBe(whole)
    expect(seqs(journal, 98)).toEqual([99, 100])
  }
  using journal = new JournalFile(file())
  journal.append(stdout('next', 1))
  expect(seqs(journal, 99)).toEqual([100, 101])
})

test.if(process.getuid?.() === 0)('holds what a full disk refuses, and writes it when there is room', () => {
  const disk = path.join(folder, 'disk')
  Bun.spawnSync(['mkdir', disk])
  expect(Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]).success).toBeTrue()
  try {
    const small = path.join(disk, 'journal')
    const filler = path.join(disk, 'filler')
    {
      using journal = new JournalFile(small)
      journal.append(stdout('first', 1))
      Bun.spawnSync(['dd', 'if=/dev/zero', `of=${filler}`, 'bs=4k'], { stderr: 'ignore' })
      for (let count = 0; count < 20; count += 1) journal.append(stdout('x'.repeat(1_000), count))
      expect(seqs(journal, 0)).toEqual(Array.from({ length: 21 }, (_, index) => index + 1))
      rmSync(filler)
      journal.append(stdout('last', 1))
      expect(seqs(journal, 20)).toEqual([21, 22])
    }
    using reopened = new JournalFile(small)
    expect(reopened.lastSeq).toBe(22)
  } finally {
    Bun.spawnSync(['umount', disk])
  }
})
