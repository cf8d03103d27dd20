import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { prepareWorkbench } from '../../apps/host/src/control/workbench-files.ts'
import { compressedBytes, listFirstLoad } from './first-load.ts'

const root = path.resolve(import.meta.dir, '../..')
/** Limit of the bytes loaded before the prompt. The editor and its languages are loaded on demand. */
const MAX_FIRST_LOAD_BYTES = 300 * 1024

describe('the first load of a page', () => {
  test('is the files that its HTML references and their static imports', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'first-load-'))
    const files = {
      'index.html': '<script type="module" src="/assets/a.js"></script><link href="/assets/a.css">',
      'assets/a.js': 'import{b}from"./b.js";import"./c.js";const d=()=>import("./later.js")',
      'assets/b.js': 'export{x}from"./d.js"',
      'assets/c.js': '',
      'assets/d.js': '',
      'assets/a.css': '',
      'assets/later.js': '',
    }
    for (const [name, text] of Object.entries(files)) await Bun.write(path.join(folder, name), text)
    expect([...listFirstLoad(folder)].sort()).toEqual(
      Object.keys(files)
        .filter((name) => name !== 'assets/later.js')
        .sort(),
    )
    rmSync(folder, { recursive: true })
  })
})

describe('the workbench', () => {
  test('loads little before the prompt, and has no source maps', async () => {
    const folder = await prepareWorkbench(root, path.join(root, '.cache'))
    const files = listFirstLoad(folder)
    expect(files.some((file) => file.endsWith('.js'))).toBe(true)
    expect(compressedBytes(folder, files)).toBeLessThanOrEqual(MAX_FIRST_LOAD_BYTES)
    const all = Array.from(new Bun.Glob('**/*').scanSync(folder))
    expect(all.filter((file) => file.endsWith('.map'))).toEqual([])
    // The rest is in separate files.
    expect(compressedBytes(folder, all)).toBeGreaterThan(compressedBytes(folder, files))
  })
})
