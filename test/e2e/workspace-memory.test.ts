import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, openRawTcp, type RawTcp } from '@sandwire/testing'
import { readPeakBytes } from './support/memory.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** As large as a text may be, of what takes twice its size in JSON. */
const TEXT = '\n'.repeat(7_900_000)
/** Of what takes six times its size. */
const LONG_IN_JSON = '\u0001'.repeat(7_900_000)
const AT_ONCE = 32
/** Half of what a sandbox has that nobody said anything about. */
const MAX_BYTES = 512 * 1024 * 1024

/** Asks, and reads nothing of the answer. */
async function openIdle(sandboxd: RunningSandboxd, route: string): Promise<RawTcp> {
  const tcp = await openRawTcp({ port: sandboxd.port })
  const { authorization } = sandboxd.headers
  const head = [
    `GET ${route} HTTP/1.1`,
    `Host: 127.0.0.1:${sandboxd.port}`,
    `Authorization: ${authorization}`,
  ]
  await tcp.write(`${head.join('\r\n')}\r\n\r\n`)
  return tcp
}

/** Asks until it is one's turn, which on a busy machine may take longer than anybody is kept waiting. */
async function patiently(ask: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const response = await ask()
    if (response.status !== 429) return response
    await response.body?.cancel()
  }
}

describe('large texts, all at once', () => {
  test.each([
    ['lines', TEXT],
    ['control characters', LONG_IN_JSON],
  ])(
    'are read one after the other, and terminals live on: %s',
    async (_, text) => {
      await using sandboxd = await startSandboxd()
      writeFileSync(join(sandboxd.workspace, 'large'), text)
      const read = async (): Promise<number> => {
        const response = await sandboxd.fetch('/workspace/contract/file?path=large')
        const { content } = (await response.json()) as { content: string }
        return content.length
      }
      const lengths = await Promise.all(Array.from({ length: AT_ONCE }, read))
      expect(new Set(lengths)).toEqual(new Set([text.length]))
      expect(readPeakBytes(sandboxd.pid)).toBeLessThan(MAX_BYTES)
    },
    60_000,
  )

  test('are the same character by character, wherever they are cut on their way', async () => {
    await using sandboxd = await startSandboxd()
    const text = `${'x'.repeat(64 * 1024 - 1)}\u{1f984}\n"\\\u0001\u2028é`.repeat(3)
    writeFileSync(join(sandboxd.workspace, 'large'), text)
    const response = await sandboxd.fetch('/workspace/contract/file?path=large')
    expect(response.headers.get('sandwire-size')).toBe(
      String(Buffer.byteLength(JSON.stringify({ content: text, path: 'large' }))),
    )
    expect((await response.text()) === JSON.stringify({ content: text, path: 'large' })).toBe(true)
  })

  test('are written one after the other', async () => {
    await using sandboxd = await startSandboxd()
    const body = JSON.stringify({ content: TEXT })
    const write = async (at: number): Promise<number> => {
      const route = `/workspace/contract/file?path=f${at}`
      const response = await patiently(() => sandboxd.fetch(route, { method: 'PUT', body }))
      await response.body?.cancel()
      return response.status
    }
    const statuses = await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => write(at)))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(readPeakBytes(sandboxd.pid)).toBeLessThan(MAX_BYTES)
  }, 60_000)

  test('wait for those who read nothing, whose leaving makes room', async () => {
    await using sandboxd = await startSandboxd()
    writeFileSync(join(sandboxd.workspace, 'large'), TEXT)
    const path = '/workspace/contract/file?path=large'
    const idle = await Promise.all(Array.from({ length: AT_ONCE }, () => openIdle(sandboxd, path)))
    await Promise.race(idle.map((tcp) => tcp.read()))
    // All room is taken, and the others wait: so does this one, which is refused in the end.
    const late = await sandboxd.fetch(path)
    expect([late.status, await late.json()]).toEqual([
      429,
      { detail: 'Cannot hold more large texts at once' },
    ])
    expect(readPeakBytes(sandboxd.pid)).toBeLessThan(MAX_BYTES)
    for (const tcp of idle) tcp.reset()
    const isThere = async (): Promise<boolean> => (await sandboxd.fetch(path)).status === 200
    await eventually(isThere, { what: 'room for a text' })
  }, 60_000)
})

describe('long listings, all at once', () => {
  test.each([
    ['tree', 'entries'],
    ['contract/tree', 'entries'],
    ['find?q=a&limit=5000', 'results'],
    ['contract/search?q=*', 'results'],
  ])(
    'take a bounded part of the memory, also when nobody reads them: %s',
    async (name, what) => {
      await using sandboxd = await startSandboxd()
      const long = 'a'.repeat(200)
      for (let at = 0; at < 10_000; at += 1) writeFileSync(join(sandboxd.workspace, `${long}${at}`), '')
      const before = readPeakBytes(sandboxd.pid)
      const route = `/workspace/${name}`
      const idle = await Promise.all(Array.from({ length: 64 }, () => openIdle(sandboxd, route)))
      await Promise.race(idle.map((tcp) => tcp.read()))
      // Answered behind all of them, or refused when it has waited long enough.
      await (await sandboxd.fetch(route)).body?.cancel()
      for (const tcp of idle) tcp.reset()
      const last = await patiently(() => sandboxd.fetch(route))
      const found = ((await last.json()) as Record<string, unknown[]>)[what]
      expect(found?.length).toBeGreaterThanOrEqual(5_000)
      expect(readPeakBytes(sandboxd.pid) - before).toBeLessThan(MAX_BYTES)
    },
    60_000,
  )
})

test('folders are packed for a few at a time, and for the next when one of them leaves', async () => {
  await using sandboxd = await startSandboxd()
  writeFileSync(join(sandboxd.workspace, 'large'), Buffer.alloc(64 * 1024 * 1024))
  const idle = await Promise.all(Array.from({ length: 8 }, () => openIdle(sandboxd, '/workspace/archive')))
  await Promise.all(idle.map((tcp) => tcp.read()))
  const late = await sandboxd.fetch('/workspace/archive')
  expect([late.status, ((await late.json()) as { error: { code: string } }).error.code]).toEqual([
    429,
    'rate_limited',
  ])
  idle[0]?.reset()
  const isThere = async (): Promise<boolean> => {
    const response = await sandboxd.fetch('/workspace/archive')
    await response.body?.cancel()
    return response.status === 200
  }
  await eventually(isThere, { what: 'a turn for an archive' })
  for (const tcp of idle) tcp.reset()
  // Whoever reads to the end gives its turn back as well.
  for (let at = 0; at < 10; at += 1)
    await eventually(
      async () => (await sandboxd.fetch('/workspace/archive?path=.&after=large')).status === 200,
      {
        what: 'a turn after others ended',
      },
    )
}, 60_000)
