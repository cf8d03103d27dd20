import { expect, test } from 'bun:test'
import { existsSync, readdirSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
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
