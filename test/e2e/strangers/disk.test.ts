import { expect, test } from 'bun:test'
import { chownSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { type RunningHost, startHost } from '../support/control.ts'
import { openLoopDisk } from '../support/loop-disk.ts'
import { AS_NOBODY, canBecomeNobody, NOBODY } from '../support/nobody.ts'

const MEBIBYTE = 1024 ** 2
/** The disk of a sandbox is as large by default, so more is promised than there is. */
const DISK_BYTES = 400 * MEBIBYTE
const OVERCOMMIT = { SANDWIRE_DISK_OVERCOMMIT: '6' }

async function post(host: RunningHost, path: string, body: unknown = {}): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return host.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
}

async function exec(host: RunningHost, sandbox: string, script: string): Promise<string> {
  const response = await post(host, `/api/sandboxes/${sandbox}/exec`, { cmd: 'sh', args: ['-c', script] })
  const text = await response.text()
  if (!response.ok) throw new Error(`Cannot run in "${sandbox}": ${text}`)
  return text
}

async function readiness(host: RunningHost, status: number): Promise<void> {
  const isReached = async (): Promise<boolean> => (await host.fetch('/readyz')).status === status
  await eventually(isReached, { what: `/readyz to answer ${status}` })
}

/** Writes until the sandbox has no space left, several times: space is granted in parts. */
const FILL = 'for i in 1 2 3; do dd if=/dev/zero of=fill$i bs=1M; sync; sleep 0.7; done 2>&1; true'

test.if(process.getuid?.() === 0)(
  'sandboxes that fill the data disk get ENOSPC, and everything else goes on',
  async () => {
    await using disk = await openLoopDisk(DISK_BYTES)
    await using host = await startHost({ data: disk.folder, env: OVERCOMMIT })
    const create = (name: string): Promise<Response> => post(host, '/api/sandboxes', { name })
    for (const name of ['one', 'two', 'quiet']) {
      expect((await create(name)).status).toBe(201)
      await exec(host, name, 'echo kept > kept')
    }
    expect((await host.fetch('/readyz')).status).toBe(200)
    const [one, two] = await Promise.all([exec(host, 'one', FILL), exec(host, 'two', FILL)])
    for (const output of [one, two]) {
      expect(output).toContain('No space left on device')
      expect(output).not.toContain('Input/output error')
    }
    // The truth about a full disk, and what still works on it.
    await readiness(host, 503)
    expect(await (await host.fetch('/readyz')).json()).toMatchObject({
      dependencies: { disk: { status: 'low' } },
    })
    expect(await exec(host, 'quiet', 'echo more >> kept && sync && cat kept')).toContain('kept\\nmore')
    expect((await create('another')).status).toBe(502)
    // Nor do saved files take the space of others.
    expect(await (await post(host, '/api/sandboxes/quiet/checkpoints')).json()).toMatchObject({
      error: {
        code: 'store_unavailable',
        message: expect.stringContaining('the disk that holds the data folder is full') as string,
      },
    })
    for (const name of ['one', 'quiet']) {
      expect((await post(host, `/api/sandboxes/${name}/stop`)).status).toBe(200)
      expect((await post(host, `/api/sandboxes/${name}/start`)).status).toBe(200)
      expect(await exec(host, name, 'cat kept')).toContain('kept')
    }
    const { bavail, bsize } = statfsSync(disk.folder)
    expect(bavail * bsize).toBeGreaterThan(0)
    expect((await host.fetch('/api/sandboxes/one', { method: 'DELETE' })).status).toBe(204)
    // Space returns.
    await readiness(host, 200)
    const isWritten = async (): Promise<boolean> =>
      (await exec(host, 'two', 'echo more >> kept && sync && cat kept')).includes('kept\\nmore')
    await eventually(isWritten, { what: 'a sandbox to write again' })
    expect((await post(host, '/api/sandboxes/another/start')).status).toBe(200)
  },
)

test.if(process.getuid?.() === 0)(
  'control uses its reserve when another program fills the data disk',
  async () => {
    await using disk = await openLoopDisk(DISK_BYTES)
    await using host = await startHost({ data: disk.folder, env: OVERCOMMIT })
    for (const name of ['one', 'two'])
      expect(
        (await post(host, '/api/sandboxes', { name, limits: { diskBytes: 64 * MEBIBYTE } })).status,
      ).toBe(201)
    await exec(host, 'one', 'echo kept > kept')
    const fill = join(disk.folder, 'fill')
    const { bavail, bsize } = statfsSync(disk.folder)
    const argv = ['fallocate', '--length', String(bavail * bsize), fill]
    // It takes what is left, and then fails.
    await Bun.spawn(argv, { stdio: ['ignore', 'ignore', 'ignore'] }).exited
    await readiness(host, 503)
    const isStopped = async (): Promise<boolean> =>
      (await post(host, '/api/sandboxes/one/stop')).status === 200
    await eventually(isStopped, { what: 'the sandbox to stop' })
    expect((await host.fetch('/api/sandboxes/two', { method: 'DELETE' })).status).toBe(204)
    rmSync(fill)
    await readiness(host, 200)
    expect((await post(host, '/api/sandboxes/one/start')).status).toBe(200)
    expect(await exec(host, 'one', 'cat kept')).toContain('kept')
  },
)

test.if(canBecomeNobody)(
  'a sandbox without an image that goes on writing to a full disk is stopped',
  async () => {
    await using disk = await openLoopDisk(96 * MEBIBYTE)
    chownSync(disk.folder, NOBODY, NOBODY)
    const env = { HOME: disk.folder, XDG_RUNTIME_DIR: undefined }
    await using host = await startHost({ data: join(disk.folder, 'data'), prefix: AS_NOBODY, env })
    for (const name of ['writes', 'quiet'])
      expect((await post(host, '/api/sandboxes', { name })).status).toBe(201)
    const script = 'while :; do dd if=/dev/zero of=fill bs=1M oflag=append conv=notrunc; done >/dev/null 2>&1'
    await post(host, '/api/sandboxes/writes/exec', { cmd: 'sh', args: ['-c', script] })
    const view = async (name: string): Promise<{ readonly state?: string; readonly reason?: string }> =>
      (await host.fetch(`/api/sandboxes/${name}`)).json()
    const isStopped = async (): Promise<boolean> => (await view('writes')).reason === 'disk_full'
    await eventually(isStopped, { what: 'the sandbox to be stopped' })
    expect(await view('quiet')).toMatchObject({ state: 'running' })
    await readiness(host, 503)
    expect((await host.fetch('/api/sandboxes/writes', { method: 'DELETE' })).status).toBe(204)
    await readiness(host, 200)
  },
)
