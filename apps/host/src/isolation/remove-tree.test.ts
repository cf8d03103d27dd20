import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { removeTree } from './remove-tree.ts'

/** Runs a command as a user who, unlike root, is subject to file modes. */
const NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--']
const AS_NOBODY = process.getuid?.() === 0 ? NOBODY : []
/** Creates a tree deeper than the longest path, by descending into each folder. */
const NEST = 'import os,sys\nos.chdir(sys.argv[1])\nfor _ in range(5000):\n os.mkdir("d"); os.chdir("d")\n'

/** Runs a copy beside the tree, because the user `nobody` may not have access to this project. */
async function removeAsNobody(tree: string): Promise<number> {
  const folder = path.dirname(tree)
  const source = path.join(import.meta.dir, 'remove-tree.ts')
  const built = await Bun.build({ entrypoints: [source], target: 'bun' })
  const copy = path.join(folder, 'remove-tree.mjs')
  writeFileSync(copy, (await built.outputs[0]?.text()) ?? '', { mode: 0o644 })
  const code = `const { removeTree } = await import(${JSON.stringify(copy)}); await removeTree(${JSON.stringify(tree)})`
  const child = Bun.spawn([...AS_NOBODY, process.execPath, '-e', code], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  return child.exited
}

describe('removeTree', () => {
  let root = ''
  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), 'remove-tree-'))
    chmodSync(root, 0o777)
  })
  afterEach(() => removeTree(root))

  test('ignores a missing path', async () => {
    await removeTree(path.join(root, 'absent'))
  })

  test('removes links, not their targets (threat T13)', async () => {
    const outside = path.join(root, 'outside')
    mkdirSync(outside, { mode: 0o500 })
    const tree = path.join(root, 'tree')
    mkdirSync(tree)
    symlinkSync(outside, path.join(tree, 'link'))
    const link = path.join(root, 'link')
    symlinkSync(outside, link)
    await Promise.all([removeTree(tree), removeTree(link)])
    expect([existsSync(tree), existsSync(link), existsSync(outside)]).toEqual([false, false, true])
  })

  test('removes 5,000 nested folders without blocking', async () => {
    const tree = path.join(root, 'tree')
    mkdirSync(tree)
    const made = Bun.spawn(['python3', '-c', NEST, tree], { stdio: ['ignore', 'ignore', 'inherit'] })
    expect(await made.exited).toBe(0)
    let turns = 0
    const timer = setInterval(() => (turns += 1), 1)
    await removeTree(tree)
    clearInterval(timer)
    expect(existsSync(tree)).toBe(false)
    expect(turns).toBeGreaterThan(1)
  })

  test('removes folders without permissions, and follows no links (threat T13)', async () => {
    const tree = path.join(root, 'tree')
    const script = `umask 022; mkdir -p ${tree}/h/i && touch ${tree}/h/i/x && touch ${root}/theirs && chmod 0400 ${root}/theirs && ln -s ${root}/theirs ${tree}/a && chmod 000 ${tree}/h/i ${tree}/h && chmod 500 ${tree}`
    const made = Bun.spawn([...AS_NOBODY, 'sh', '-c', script], { stdio: ['ignore', 'ignore', 'inherit'] })
    expect(await made.exited).toBe(0)
    expect(await removeAsNobody(tree)).toBe(0)
    expect(existsSync(tree)).toBe(false)
    expect(statSync(path.join(root, 'theirs')).mode & 0o777).toBe(0o400)
  })

  test.if(AS_NOBODY.length > 0)('fails when it lacks permission', async () => {
    const mine = path.join(root, 'mine')
    mkdirSync(mine)
    writeFileSync(path.join(mine, 'x'), '')
    chmodSync(root, 0o755)
    expect(await removeAsNobody(mine)).not.toBe(0)
    expect(existsSync(path.join(mine, 'x'))).toBe(true)
  })

  test('times out', async () => {
    const tree = path.join(root, 'tree')
    mkdirSync(tree)
    for (let index = 0; index < 5_000; index += 1) writeFileSync(path.join(tree, String(index)), '')
    const outcome = await removeTree(tree, 1).catch((error: unknown) => String(error))
    expect(outcome).toContain('it takes longer than')
  })
})
