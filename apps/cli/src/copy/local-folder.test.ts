import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { toLocalPath } from './local-entries.ts'
import { LocalFolder } from './local-folder.ts'

const DAY_MS = 24 * 60 * 60 * 1000

test('removes temporary files of killed copies after a day, in the folders that it writes to', () => {
  const base = mkdtempSync(join(tmpdir(), 'local-folder-'))
  try {
    const [file, link] = [`.sandwire-copy-${'a'.repeat(16)}`, `.sandwire-copy-${'b'.repeat(16)}`]
    const unlike = ['.sandwire-copy-', '.sandwire-copy-notes', 'file']
    for (const folder of [base, join(base, 'used'), join(base, 'unused')]) {
      mkdirSync(folder, { recursive: true })
      for (const name of [file, ...unlike]) writeFileSync(join(folder, name), '')
      symlinkSync('file', join(folder, link))
    }
    mkdirSync(join(base, `.sandwire-copy-${'c'.repeat(16)}`))
    const copy = (nowMs: number): void => {
      using folder = new LocalFolder(toLocalPath(base), nowMs)
      for (const parts of [['new'], ['used', 'new']])
        folder.openFile(parts).commit({ mode: 0o644, mtimeNs: '0' })
    }
    const left = (folder: string): readonly string[] =>
      readdirSync(join(base, folder)).filter((name) => name === file || name === link)
    copy(Date.now() + DAY_MS / 2)
    expect(['.', 'used', 'unused'].map((folder) => left(folder).length)).toEqual([2, 2, 2])
    copy(Date.now() + 2 * DAY_MS)
    expect(['.', 'used', 'unused'].map((folder) => left(folder).length)).toEqual([0, 0, 2])
    expect(readdirSync(join(base, 'used')).toSorted()).toEqual([...unlike, 'new'].toSorted())
    expect(readdirSync(base)).toContain(`.sandwire-copy-${'c'.repeat(16)}`)
  } finally {
    rmSync(base, { recursive: true })
  }
})
