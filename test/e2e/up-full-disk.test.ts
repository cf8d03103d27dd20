import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DISK_FULL } from '@sandwire/internal-api'
import { type RunningHost, startHost } from './support/control.ts'

/** Enough for bundles, databases, logs and small sandboxes, and quick to fill. */
const DISK_BYTES = 192 * 1024 ** 2
const LIMITS = { diskBytes: 64 * 1024 ** 2 }

async function run(argv: readonly string[]): Promise<void> {
  await Bun.spawn([...argv], { stdio: ['ignore', 'ignore', 'ignore'] }).exited
}

const MAIN = resolve(import.meta.dir, '../../apps/host/src/main.ts')

/** The lines that a failed start writes to standard error. */
async function refusalOf(data: string): Promise<string[]> {
  const child = Bun.spawn([process.execPath, MAIN, 'up', '--port', '0', '--data', data], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const stderr = await new Response(child.stderr).text()
  expect(await child.exited).not.toBe(0)
  return stderr.split('\n').filter((line) => line !== '' && !line.endsWith('…'))
}

async function post(host: RunningHost, path: string, body?: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return host.fetch(path, {
    method: 'POST',
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

/** Expects an error that names the disk and says that it is full. */
async function expectFull(response: Response): Promise<void> {
  const { error } = await response.json()
  expect([response.status, error.code]).toEqual([502, 'sandbox_failed'])
  expect(error.message).toEndWith(DISK_FULL)
}

test.if(process.getuid?.() === 0)('create names a full disk, and destroy still works', async () => {
  const data = mkdtempSync(join(tmpdir(), 'sandwire-full-'))
  await run(['mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', data])
  try {
    await using host = await startHost({ data })
    for (const name of ['runs', 'stopped'])
      expect((await post(host, '/api/sandboxes', { name, limits: LIMITS })).status).toBe(201)
    expect((await post(host, '/api/sandboxes/stopped/stop')).status).toBe(200)
    const fill = join(data, 'fill')
    await run(['dd', 'if=/dev/zero', `of=${fill}`, 'bs=64k'])
    await expectFull(await post(host, '/api/sandboxes', { name: 'another', limits: LIMITS }))
    expect((await host.fetch('/api/sandboxes/runs', { method: 'DELETE' })).status).toBe(204)
    rmSync(fill)
    expect((await post(host, '/api/sandboxes/stopped/start')).status).toBe(200)
    expect((await host.fetch('/api/sandboxes/stopped', { method: 'DELETE' })).status).toBe(204)
    expect(readdirSync(join(data, 'sandboxes'))).toEqual([])
    await host.stop()
  } finally {
    await run(['umount', '--lazy', data])
    rmdirSync(data)
  }
})

test.if(process.getuid?.() === 0)(
  'a start on a full or read-only disk names the folder and gives a hint',
  async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-full-'))
    await run(['mount', '-t', 'tmpfs', '-o', 'size=40k,mode=700', 'tmpfs', data])
    const refusal = (why: string): string[] => [
      `sandwire: Cannot use the data folder "${data}": ${why}`,
      expect.stringMatching(/^hint: .*--data$/),
    ]
    try {
      await run(['dd', 'if=/dev/zero', `of=${join(data, 'fill')}`, 'bs=1k'])
      expect(await refusalOf(data)).toEqual(refusal('its disk is full'))
      expect(readdirSync(join(data, 'keys'))).toEqual([])
      // Simulates a disk that was used before and has become read-only.
      for (const name of ['keys', 'control', 'cache', 'sandboxes'])
        mkdirSync(join(data, name), { recursive: true })
      await run(['mount', '-o', 'remount,ro', data])
      expect(await refusalOf(data)).toEqual(refusal('it is read-only'))
    } finally {
      await run(['umount', '--lazy', data])
      rmdirSync(data)
    }
  },
)

test.if(process.getuid?.() === 0)(
  'a start that runs out of disk space leaves no partial files, and removes those of a killed start',
  async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-full-'))
    // Enough space for everything except the bundles: sandboxd and control take several hundred kilobytes each.
    await run(['mount', '-t', 'tmpfs', '-o', 'size=900k', 'tmpfs', data])
    const cache = join(data, 'cache')
    try {
      mkdirSync(cache)
      await Bun.write(join(cache, 'control.mjs.4200000.new'), 'x')
      expect(await refusalOf(data)).toEqual([expect.stringContaining('its disk is full'), expect.anything()])
      expect(readdirSync(cache).filter((name) => name.includes('.new'))).toEqual([])
    } finally {
      await run(['umount', '--lazy', data])
      rmdirSync(data)
    }
  },
)

test('a start refuses a data folder that is a file in one line', async () => {
  const file = import.meta.path
  expect(await refusalOf(file)).toEqual([
    `sandwire: Cannot use the data folder "${file}": "${file}" is not a folder; choose another with --data`,
  ])
})
