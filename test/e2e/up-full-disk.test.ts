import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DISK_FULL } from '@sandwire/internal'
import { type RunningHost, startHost } from './support/control.ts'

/** Room for bundles, databases and logs, quickly filled. */
const DISK_BYTES = 48 * 1024 ** 2

async function run(argv: readonly string[]): Promise<void> {
  await Bun.spawn([...argv], { stdio: ['ignore', 'ignore', 'ignore'] }).exited
}

async function post(host: RunningHost, path: string, body?: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return host.fetch(path, {
    method: 'POST',
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

/** A refusal that says what is wrong with which disk. */
async function expectFull(response: Response): Promise<void> {
  const { error } = await response.json()
  expect([response.status, error.code]).toEqual([502, 'sandbox_failed'])
  expect(error.message).toEndWith(DISK_FULL)
}

test.if(process.getuid?.() === 0)(
  'a full disk is named to whoever creates or stops, and what is destroyed goes all the same',
  async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-full-'))
    await run(['mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', data])
    try {
      await using host = await startHost({ data })
      for (const name of ['runs', 'stopped'])
        expect((await post(host, '/api/sandboxes', { name })).status).toBe(201)
      expect((await post(host, '/api/sandboxes/stopped/stop')).status).toBe(200)
      const fill = join(data, 'fill')
      await run(['dd', 'if=/dev/zero', `of=${fill}`, 'bs=4k'])
      await expectFull(await post(host, '/api/sandboxes', { name: 'another' }))
      await expectFull(await post(host, '/api/sandboxes/runs/stop'))
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
  },
)
