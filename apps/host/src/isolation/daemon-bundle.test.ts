import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'bun:test'
import { bundleDaemon } from './daemon-bundle.ts'

test('a bundle of sandboxd has the ripgrep that ships with it, in one folder per content', async () => {
  const cache = mkdtempSync(path.join(tmpdir(), 'bundle-'))
  try {
    const source = path.resolve(import.meta.dir, '../../../sandboxd/src')
    const folder = await bundleDaemon(source, cache)
    const ripgrep = path.join(folder, 'bin/rg')
    expect(statSync(ripgrep).mode & 0o777).toBe(0o755)
    expect(Bun.spawnSync([ripgrep, '--version']).stdout.toString()).toStartWith('ripgrep ')
    expect(await bundleDaemon(source, cache)).toBe(folder)
    // A damaged or incomplete bundle is rebuilt.
    const main = path.join(folder, 'main.js')
    const whole = readFileSync(main, 'utf8')
    truncateSync(main, 100)
    expect(await bundleDaemon(source, cache)).toBe(folder)
    expect(readFileSync(main, 'utf8')).toBe(whole)
    unlinkSync(ripgrep)
    expect(await bundleDaemon(source, cache)).toBe(folder)
    expect(statSync(ripgrep).mode & 0o777).toBe(0o755)
  } finally {
    rmSync(cache, { recursive: true })
  }
})
