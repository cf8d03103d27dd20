import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type RunningHost, startHost } from './support/control.ts'

describe('a host without isolation', () => {
  let host: RunningHost
  beforeAll(async () => {
    host = await startHost({ env: { SANDWIRE_ISOLATION: 'none' } })
  })
  afterAll(() => host.stop())

  const create = async (body: object): Promise<{ status: number; answer: unknown }> => {
    const response = await host.fetch('/api/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ start: false, ...body }),
    })
    return { status: response.status, answer: await response.json() }
  }

  test.each([
    ['network', { network: { policy: 'none' } }],
    ['network', { network: { policy: 'allowlist', allow: ['good.example'] } }],
    ['limits', { limits: { memoryBytes: 64 * 1024 ** 2 } }],
  ])('refuses a setting that it cannot apply, and names it: %s %j', async (setting, settings) => {
    expect(await create({ name: 'held', ...settings })).toEqual({
      status: 400,
      answer: {
        error: expect.objectContaining({
          code: 'bad_request',
          message: expect.stringMatching(new RegExp(`: ${setting} cannot .* not isolated`)),
        }),
      },
    })
    expect((await host.fetch('/api/sandboxes/held')).status).toBe(404)
  })

  test('reports a sandbox as not isolated, with an open network and no limits', async () => {
    const free = { isolation: 'none', network: { policy: 'open', allow: [] }, limits: null }
    expect(await create({ name: 'plain' })).toMatchObject({ status: 201, answer: free })
    expect(await create({ name: 'wide', network: { policy: 'open' } })).toMatchObject({
      status: 201,
      answer: free,
    })
    expect(await (await host.fetch('/api/sandboxes')).json()).toMatchObject({ sandboxes: [free, free] })
  })
})
