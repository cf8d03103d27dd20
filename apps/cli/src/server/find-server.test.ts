import { expect, test } from 'bun:test'
import { probeServer } from './find-server.ts'

test.each([
  ['a server of ours', true, () => Response.json({ status: 'ok', version: '0' })],
  ['something else', false, () => new Response('hello')],
  ['other JSON', false, () => Response.json(['ok'])],
  ['a server that is broken', false, () => Response.json({ status: 'ok' }, { status: 500 })],
  ['a redirect', false, () => Response.redirect('http://localhost:1/')],
] as const)('probeServer knows %s: %p', async (_, expected, answer) => {
  const seen: [string, string | null][] = []
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url, headers }) => {
      seen.push([new URL(url).pathname, headers.get('authorization')])
      return answer()
    },
  })
  expect(await probeServer(`http://127.0.0.1:${server.port}/attach`)).toBe(expected)
  expect(seen).toEqual([['/healthz', null]])
})

test('probeServer knows that nobody listens', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { url } = server
  await server.stop(true)
  expect(await probeServer(url.href)).toBe(false)
  expect(await probeServer('not an address')).toBe(false)
})
