import { expect, test } from 'bun:test'
import { existsSync, readdirSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { hasLoopDevices } from '../../apps/host/src/isolation/disk-image.ts'
import { startHost } from './support/control.ts'

test('a sandbox without its files does not start with empty ones; its programs are rebuilt', async () => {
  // With a store, the last version would be restored.
  await using host = await startHost({ env: { SANDWIRE_STORE: 'none' } })
  const post = (path: string, body: unknown = {}): Promise<Response> =>
    host.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const exec = async (script: string): Promise<unknown> =>
    (await post('/api/sandboxes/dev/exec', { cmd: 'sh', args: ['-c', script] })).json()
  const { id } = await (await post('/api/sandboxes', { name: 'dev' })).json()
  expect(await exec('echo kept > kept')).toMatchObject({ exit: { code: 0 } })
  expect((await post('/api/sandboxes/dev/stop')).status).toBe(200)

  const kept = ['images', 'files'].find((name) => existsSync(join(host.data, 'isolation', name))) ?? ''
  const folder = join(host.data, 'isolation', kept)
  const [name = ''] = readdirSync(folder)
  expect(name).toStartWith(id)
  renameSync(folder, `${folder}.unmounted`)
  const response = await post('/api/sandboxes/dev/start')
  expect([response.status, await response.json()]).toMatchObject([
    500,
    { error: { code: 'files_missing', message: expect.stringContaining(`"isolation/${kept}/${name}"`) } },
  ])
  expect(await exec('ls -A')).toMatchObject({ error: { code: 'files_missing' } })
  expect(existsSync(join(folder, name))).toBe(false)
  expect(await (await host.fetch('/api/sandboxes/dev')).json()).toMatchObject({
    state: 'failed',
    reason: 'files_missing',
  })

  renameSync(`${folder}.unmounted`, folder)
  expect(await exec('cat kept')).toMatchObject({ output: 'kept\n' })

  // Programs in the cache are rebuilt while the host runs, damaged or deleted.
  const cache = join(host.data, 'cache')
  const bundle = readdirSync(cache).find((name) => name.startsWith('sandboxd-') && !name.endsWith('.sha256'))
  const damages = [
    () => truncateSync(join(cache, bundle ?? '', 'main.js'), 100),
    () => rmSync(cache, { recursive: true }),
  ]
  for (const damage of damages) {
    expect((await post('/api/sandboxes/dev/stop')).status).toBe(200)
    damage()
    expect(await exec('cat kept')).toMatchObject({ output: 'kept\n' })
  }
})

test.skipIf(!hasLoopDevices(process.getuid?.() === 0))(
  'files that were saved after a disk was lost are not replaced by those on the disk when it comes back, nor by a damaged disk',
  async () => {
    await using host = await startHost()
    const post = (path: string, body: unknown = {}): Promise<Response> =>
      host.fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const exec = async (script: string): Promise<unknown> =>
      (await post('/api/sandboxes/dev/exec', { cmd: 'sh', args: ['-c', script] })).json()
    const stop = async (): Promise<void> => expect((await post('/api/sandboxes/dev/stop')).status).toBe(200)
    const limits = { diskBytes: 64 * 1024 ** 2 }
    const { id } = await (await post('/api/sandboxes', { name: 'dev', limits })).json()
    const images = join(host.data, 'isolation/images')
    expect(await exec('echo 1 > version')).toMatchObject({ exit: { code: 0 } })
    await stop()
    renameSync(images, `${images}.unmounted`)
    expect(await exec('cat version; echo 2 > version')).toMatchObject({ output: '1\n' })
    await stop()
    rmSync(images, { recursive: true })
    renameSync(`${images}.unmounted`, images)
    expect(await exec('cat version')).toMatchObject({ output: '2\n' })
    await stop()
    truncateSync(join(images, `${id}.ext4`), 0)
    expect(await exec('cat version')).toMatchObject({ output: '2\n' })
    expect(readdirSync(join(images, `${id}.ext4.replaced`))).toHaveLength(2)
    expect((await host.fetch('/api/sandboxes/dev', { method: 'DELETE' })).status).toBe(204)
    expect(readdirSync(images)).toEqual([])
  },
)
