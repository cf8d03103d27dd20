import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { findFolderObstacle } from './folder-obstacle.ts'

let folder = ''
const at = (name: string): string => path.join(folder, name)
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'obstacle-'))
  mkdirSync(at('there'))
  writeFileSync(at('file'), '')
  symlinkSync(at('nowhere/deeper'), at('dangling'))
  symlinkSync(at('circle'), at('circle'))
  symlinkSync(at('there'), at('link'))
})
afterAll(() => rmSync(folder, { recursive: true }))

test.each(['there', 'there/new/deeper', 'link', 'link/new', 'new'])('nothing is in the way of %s', (name) => {
  expect(findFolderObstacle(at(name))).toBeUndefined()
})

test.each([
  ['file', 'file', 'is not a folder'],
  ['file/below/it', 'file', 'is not a folder'],
  ['dangling', 'dangling', 'is a link that leads nowhere'],
  ['dangling/below', 'dangling', 'is a link that leads nowhere'],
  ['circle', 'circle', 'is a link that leads in a circle'],
])('what is in the way of %s is named', (name, what, why) => {
  expect(findFolderObstacle(at(name))).toBe(`"${at(what)}" ${why}`)
})

test('a path that is too long is named by its beginning', () => {
  for (const name of ['a'.repeat(300), 'a/'.repeat(3_000)]) {
    const told = findFolderObstacle(at(name)) ?? ''
    expect(told).toEndWith('…" is too long for a path or a name in it')
    expect(told.length).toBeLessThan(250)
  }
})
