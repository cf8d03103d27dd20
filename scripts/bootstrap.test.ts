import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

// A fake npm: counts its runs and creates the files of an install without install scripts.
const fakeNpm = `
const fs = require('node:fs')
fs.appendFileSync('npm-runs', process.argv[2] + '\\n')
if (fs.existsSync('offline')) { console.error('npm error code ENOTFOUND'); process.exit(1) }
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
fs.rmSync('node_modules', { recursive: true, force: true })
fs.mkdirSync('node_modules/bun/bin', { recursive: true })
fs.mkdirSync('node_modules/@oven/bun-here/bin', { recursive: true })
fs.mkdirSync('node_modules/@oven/bun-elsewhere/bin', { recursive: true })
for (const name of ['bun.exe', 'bunx.exe']) fs.writeFileSync('node_modules/bun/bin/' + name, 'exit 1')
fs.writeFileSync('node_modules/@oven/bun-elsewhere/bin/bun', '#!/bin/sh\\nexit 1\\n', { mode: 0o755 })
fs.writeFileSync('node_modules/@oven/bun-here/bin/bun', '#!/bin/sh\\nexit 0\\n', { mode: 0o755 })
`

let tree = ''
const at = (...parts: string[]): string => path.join(tree, ...parts)

beforeEach(() => {
  tree = mkdtempSync(path.join(tmpdir(), 'bootstrap-'))
  mkdirSync(at('scripts'))
  cpSync(path.join(import.meta.dir, 'bootstrap.mjs'), at('scripts', 'bootstrap.mjs'))
  writeFileSync(at('npm.cjs'), fakeNpm)
  writeFileSync(at('package-lock.json'), '{"packages":{"node_modules/bun":{"version":"1.0.0"}}}')
})

afterEach(() => rmSync(tree, { recursive: true, force: true }))

async function bootstrap(): Promise<{ status: number; stderr: string }> {
  const child = Bun.spawn(['node', at('scripts', 'bootstrap.mjs')], {
    env: { ...process.env, npm_execpath: at('npm.cjs') },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  const [stderr, status] = await Promise.all([new Response(child.stderr).text(), child.exited])
  return { status, stderr }
}

const npmRuns = (): number =>
  existsSync(at('npm-runs')) ? readFileSync(at('npm-runs'), 'utf8').split('\n').length - 1 : 0

test('bootstrap installs once, then is silent', async () => {
  const first = await bootstrap()
  expect(first.stderr).toMatch(/^Installing dependencies …\nInstalled in \d+\.\d s\n$/)
  expect(await bootstrap()).toEqual({ status: 0, stderr: '' })
  expect(npmRuns()).toBe(1)
})

test('bootstrap links the Bun binary that runs on this machine', async () => {
  await bootstrap()
  for (const name of ['bun.exe', 'bunx.exe']) {
    expect(readFileSync(at('node_modules', 'bun', 'bin', name), 'utf8')).toContain('exit 0')
    expect(statSync(at('node_modules', 'bun', 'bin', name)).mode & 0o111).toBe(0o111)
  }
})

test('bootstrap reinstalls when the lockfile changes', async () => {
  await bootstrap()
  writeFileSync(at('package-lock.json'), '{"packages":{"node_modules/bun":{"version":"2.0.0"}}}')
  await bootstrap()
  expect(npmRuns()).toBe(2)
})

test('bootstrap keeps the result of a manual npm install', async () => {
  await bootstrap()
  rmSync(at('node_modules', '.sandwire-stamp'))
  cpSync(at('package-lock.json'), at('node_modules', '.package-lock.json'))
  expect(await bootstrap()).toEqual({ status: 0, stderr: '' })
  expect(npmRuns()).toBe(1)
})

test('bootstrap installs packages of a workspace that a manual install left out', async () => {
  await bootstrap()
  rmSync(at('node_modules', '.sandwire-stamp'))
  cpSync(at('package-lock.json'), at('node_modules', '.package-lock.json'))
  const packages = {
    'node_modules/bun': { version: '1.0.0' },
    'apps/host': { version: '1.0.0' },
    'apps/host/node_modules/workerd': { version: '2.0.0' },
  }
  writeFileSync(at('package-lock.json'), JSON.stringify({ packages }))
  await bootstrap()
  expect(npmRuns()).toBe(2)
})

test('bootstrap installs once when several start together', async () => {
  const outcomes = await Promise.all([bootstrap(), bootstrap(), bootstrap()])
  expect(outcomes.map((each) => each.status)).toEqual([0, 0, 0])
  expect(npmRuns()).toBe(1)
  expect(existsSync(at('.cache', 'bootstrap.lock'))).toBe(false)
})

test('bootstrap takes over the lock of a process that died', async () => {
  const dead = Bun.spawnSync(['true']).pid
  mkdirSync(at('.cache', 'bootstrap.lock'), { recursive: true })
  writeFileSync(at('.cache', 'bootstrap.lock', 'pid'), `${dead}`)
  expect((await bootstrap()).status).toBe(0)
})

test('bootstrap reports in one line why npm failed, with a hint, and retries on the next run', async () => {
  writeFileSync(at('offline'), '')
  const { status, stderr } = await bootstrap()
  expect(status).toBe(1)
  expect(stderr).toMatch(
    /^Installing dependencies …\nerror: Cannot install dependencies: ENOTFOUND\nhint: .+\n$/,
  )
  rmSync(at('offline'))
  expect((await bootstrap()).status).toBe(0)
})
