import { expect, test } from 'bun:test'
import { startControl } from './support/control.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

test('limits that containers cannot enforce are refused by name', async () => {
  await using sandboxes = new FakeSandboxes()
  await using control = await startControl({ runner: sandboxes, config: { provider: 'container' } })
  const create = (body: object): Promise<Response> =>
    control.fetch('/api/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, start: false }),
    })
  const refused = await create({ name: 'small', limits: { pids: 16 } })
  expect(refused.status).toBe(400)
  expect(await refused.json()).toMatchObject({
    error: { code: 'bad_request', message: expect.stringContaining('limits') },
  })
  expect((await control.fetch('/api/sandboxes/small')).status).toBe(404)

  // Valid limits get as far as the missing container of this control.
  const usual = await create({ name: 'usual', limits: {} })
  expect(await usual.json()).toMatchObject({ error: { code: 'provider_unavailable' } })
})
