import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, openRawTcp, type RawTcp } from '@sandwire/testing'
import { readPeakBytes } from './support/memory.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** Close to the largest text; JSON doubles the one and multiplies the other by six. */
const LINES = '\n'.repeat(7_900_000)
const CONTROL_CHARACTERS = '\u0001'.repeat(7_900_000)
/** Requests at a time: without a budget their texts alone would need more than `MAX_BYTES`. */
const CONCURRENCY = 24
/** Half of a sandbox's default memory. The peak counts from the start of the one sandboxd that all tests share. */
const MAX_BYTES = 512 * 1024 * 1024

let sandboxd: RunningSandboxd
beforeAll(async () => {
  sandboxd = await startSandboxd()
  writeFileSync(join(sandboxd.workspace, 'lines'), LINES)
  writeFileSync(join(sandboxd.workspace, 'control'), CONTROL_CHARACTERS)
})
afterAll(() => sandboxd[Symbol.asyncDispose]())

/** Sends a request and reads nothing of the response. */
async function openIdle(route: string): Promise<RawTcp> {
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

/** Retries while the response is 429: on a loaded machine the turn may come later than the wait limit. */
async function retryWhileBusy(send: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const response = await send()
    if (response.status !== 429) return response
    await response.body?.cancel()
  }
}

describe('large texts requested at once', () => {
  test('are read within the memory budget', async () => {
    const sizes = { lines: 2 * LINES.length, control: 6 * CONTROL_CHARACTERS.length }
    const read = async (_: unknown, at: number): Promise<boolean> => {
      // Few of the longer ones: this process has to receive them.
      const name = at % 6 === 0 ? 'control' : 'lines'
      const response = await retryWhileBusy(() => sandboxd.fetch(`/workspace/compat/file?path=${name}`))
      let bytes = 0
      const body: ReadableStream<Uint8Array> | null = response.body
      for await (const chunk of body ?? []) bytes += chunk.byteLength
      return bytes === sizes[name] + JSON.stringify({ content: '', path: name }).length
    }
    const areWhole = await Promise.all(Array.from({ length: CONCURRENCY }, read))
    expect(areWhole).not.toContain(false)
    expect(readPeakBytes(sandboxd.pid)).toBeLessThan(MAX_BYTES)
  })

  test('arrive unchanged, wherever they are split on the way', async () => {
    const text = `${'x'.repeat(64 * 1024 - 1)}\u{1f984}\n"\\\u0001\u2028é`.repeat(3)
    writeFileSync(join(sandboxd.workspace, 'split'), text)
    const response = await sandboxd.fetch('/workspace/compat/file?path=split')
    expect(response.headers.get('sandwire-size')).toBe(
      String(Buffer.byteLength(JSON.stringify({ content: text, path: 'split' }))),
    )
    expect((await response.text()) === JSON.stringify({ content: text, path: 'split' })).toBe(true)
  })

  test('are written within the memory budget', async () => {
    const body = JSON.stringify({ content: LINES })
    const write = async (at: number): Promise<number> => {
      const route = `/workspace/compat/file?path=f${at}`
      const response = await retryWhileBusy(() => sandboxd.fetch(route, { method: 'PUT', body }))
      await response.body?.cancel()
      return response.status
    }
    const statuses = await Promise.all(Array.from({ length: CONCURRENCY }, (_, at) => write(at)))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(readPeakBytes(sandboxd.pid)).toBeLessThan(MAX_BYTES)
  })

  test('wait for clients that read nothing, and get their turn when those disconnect', async () => {
    const path = '/workspace/compat/file?path=lines'
    const idle = await Promise.all(Array.from({ length: CONCURRENCY }, () => openIdle(path)))
    await Promise.race(idle.map((tcp) => tcp.read()))
    expect(readPeakBytes(sandboxd.pid)).toBeLessThan(MAX_BYTES)
    for (const tcp of idle) tcp.reset()
    const isServed = async (): Promise<boolean> => {
      const response = await sandboxd.fetch(path)
      await response.body?.cancel()
      return response.status === 200
    }
    await eventually(isServed, { what: 'room for a text' })
  })
})

test('long listings requested at once stay within the memory budget', async () => {
  const names = Array.from({ length: 5_000 }, (_, at) => `${'a'.repeat(200)}${at}`)
  mkdirSync(join(sandboxd.workspace, 'many'))
  for (const name of names) writeFileSync(join(sandboxd.workspace, 'many', name), '')
  const route = '/workspace/tree?path=many'
  const idle = await Promise.all(Array.from({ length: 64 }, () => openIdle(route)))
  await Promise.race(idle.map((tcp) => tcp.read()))
  for (const tcp of idle) tcp.reset()
  const last = await retryWhileBusy(() => sandboxd.fetch(route))
  const { entries } = (await last.json()) as { entries: unknown[] }
  expect(entries).toHaveLength(names.length)
  expect(readPeakBytes(sandboxd.pid)).toBeLessThan(MAX_BYTES)
})

test('a bounded number of archives is packed at a time, and a disconnect frees a slot', async () => {
  mkdirSync(join(sandboxd.workspace, 'packed'))
  writeFileSync(join(sandboxd.workspace, 'packed/large'), Buffer.alloc(64 * 1024 * 1024))
  const route = '/workspace/archive?path=packed'
  const idle = await Promise.all(Array.from({ length: 8 }, () => openIdle(route)))
  await Promise.all(idle.map((tcp) => tcp.read()))
  const late = await sandboxd.fetch(route)
  expect([late.status, ((await late.json()) as { error: { code: string } }).error.code]).toEqual([
    429,
    'rate_limited',
  ])
  idle[0]?.reset()
  const isServed = async (): Promise<boolean> => {
    const response = await sandboxd.fetch(route)
    await response.body?.cancel()
    return response.status === 200
  }
  await eventually(isServed, { what: 'a slot for an archive' })
  for (const tcp of idle) tcp.reset()
  // An archive that is read to its end frees its slot as well.
  for (let at = 0; at < 10; at += 1)
    await eventually(async () => (await sandboxd.fetch(`${route}&after=large`)).status === 200, {
      what: 'a slot after other archives ended',
    })
})
