import { expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { startHost } from './support/control.ts'
import { workerdOf } from './support/deployment.ts'

const JSON_HEADERS = { 'content-type': 'application/json' }

test('a destroy that is interrupted by a frozen host and a killed workerd is finished, and nothing starts empty', async () => {
  await using host = await startHost()
  const post = (path: string, body: unknown = {}): Promise<Response> =>
    host.fetch(path, { method: 'POST', headers: JSON_HEADERS, body: JSON.stringify(body) })
  expect((await post('/api/sandboxes', { name: 'gone' })).status).toBe(201)
  const write = { cmd: 'sh', args: ['-c', 'echo kept > kept'] }
  expect((await post('/api/sandboxes/gone/exec', write)).status).toBe(200)
  const workerd = workerdOf(host) ?? 0
  host.kill('SIGSTOP')
  using thawed = new DisposableStack()
  thawed.defer(() => host.kill('SIGCONT'))
  const destroyed = host.fetch('/api/sandboxes/gone', { method: 'DELETE' }).catch(() => undefined)
  const state = async (): Promise<string> => {
    const { sandboxes } = await (await host.fetch('/api/sandboxes', { keepalive: false })).json()
    return sandboxes.find(({ name }: { name: string }) => name === 'gone')?.state ?? 'absent'
  }
  await eventually(async () => (await state()) === 'destroying', { what: 'the intent to be stored' })
  for (const path of ['/api/sandboxes/gone/start', '/api/sandboxes/gone/exec'])
    expect(await (await post(path, write)).json()).toMatchObject({ error: { code: 'sandbox_destroying' } })
  process.kill(workerd, 'SIGKILL')
  await destroyed
  host.kill('SIGCONT')
  const isGone = async (): Promise<boolean> => (await state().catch(() => 'restarting')) === 'absent'
  await eventually(isGone, { what: 'the sandbox to be destroyed' })
  expect((await post('/api/sandboxes/gone/start')).status).toBe(404)
  // The name is free, for another sandbox.
  expect((await post('/api/sandboxes', { name: 'gone' })).status).toBe(201)
  const read = { cmd: 'sh', args: ['-c', 'ls -A'] }
  expect(await (await post('/api/sandboxes/gone/exec', read)).json()).toMatchObject({ output: '' })
})
