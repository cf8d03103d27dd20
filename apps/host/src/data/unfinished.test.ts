import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { removeUnfinished, unfinishedName } from './unfinished.ts'

/** No process has it: numbers end at 4,194,304. */
const NOBODY = 4_200_000

test('what a dead process has not finished is removed, and nothing else', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'unfinished-'))
  const at = (name: string): string => path.join(folder, name)
  try {
    mkdirSync(at(`sandboxd-abc.${NOBODY}.new/screen`), { recursive: true })
    const others = [
      'control.mjs',
      `control.mjs.${process.ppid}.new`,
      'a.new',
      'a.0.new',
      `a.${NOBODY}.new.txt`,
    ]
    for (const name of [...others, `control.mjs.${NOBODY}.new`]) writeFileSync(at(name), 'x')
    writeFileSync(unfinishedName(at('an-earlier-one-with-our-number')), 'x')
    removeUnfinished(folder)
    expect(readdirSync(folder).toSorted()).toEqual(others.toSorted())
  } finally {
    rmSync(folder, { recursive: true })
  }
})
