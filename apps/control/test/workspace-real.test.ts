import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { eventually } from '@sandwire/testing'
import { type RunningControl, startControl } from './support/control.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'

const W = '/api/workspaces/default'
const MIB = 1024 * 1024
/** Far more than streaming needs, far less than buffering would. */
const HEADROOM_MIB = 160
const LARGE_MIB = 512
const TIMEOUT_MS = 180_000

let sandboxes: RealSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new RealSandboxes()
  control = await startControl({ runner: sandboxes })
  expect((await control.fetch('/api/sandboxes', { method: 'POST', json: { name: 'default' } })).status).toBe(
    201,
  )
}, TIMEOUT_MS)
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

/** Peak memory of this control's workerd so far. */
function peakMib(): number {
  const found = Bun.spawnSync(['pgrep', '-n', '-P', String(process.pid), 'workerd'])
    .stdout.toString()
    .trim()
  const [, kib = ''] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${found}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}

function pattern(bytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes).map((_, at) => (at * 31 + (at >> 8)) & 0xff)
}

function hashOf(bytes: Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
}

describe('a real sandboxd behind control', () => {
  test('stores a file under any name, and returns it whole and in ranges', async () => {
    const bytes = pattern(3 * MIB + 7)
    for (const name of [
      'plain',
      'with%20space',
      'new%0Aline',
      '%F0%9F%90%88',
      '-dash',
      'not%FFutf8',
      'a%2Bb',
    ]) {
      const route = `${W}/file?path=${name}`
      expect((await control.fetch(route, { method: 'PUT', body: bytes })).status).toBe(200)
      const whole = await control.fetch(route)
      expect(whole.headers.get('content-length')).toBe(String(bytes.length))
      expect(hashOf(new Uint8Array(await whole.arrayBuffer()))).toBe(hashOf(bytes))
      const part = await control.fetch(route, { headers: { range: 'bytes=1048570-2097200' } })
      expect(part.status).toBe(206)
      expect(hashOf(new Uint8Array(await part.arrayBuffer()))).toBe(
        hashOf(bytes.subarray(1_048_570, 2_097_201)),
      )
      expect((await control.fetch(route, { method: 'DELETE' })).status).toBe(200)
      expect((await control.fetch(route)).status).toBe(404)
    }
  })

  test('refuses a lost update and returns the current state', async () => {
    const route = `${W}/file?path=shared`
    const first = await control.fetch(route, { method: 'PUT', body: 'one' })
    const etag = first.headers.get('etag') ?? ''
    expect(
      (await control.fetch(route, { method: 'PUT', body: 'two', headers: { 'if-match': etag } })).status,
    ).toBe(200)
    const late = await control.fetch(route, { method: 'PUT', body: 'three', headers: { 'if-match': etag } })
    expect([late.status, await late.json()]).toMatchObject([
      412,
      { error: { code: 'file_changed', current: { size: 3 } } },
    ])
    expect(await (await control.fetch(route)).text()).toBe('two')
  })

  test('streams changes and search results', async () => {
    const watch = await control.fetch(`${W}/watch?path=.`)
    const reader = watch.body?.pipeThrough(new TextDecoderStream()).getReader()
    let heard = ''
    const listening = (async () => {
      for (;;) {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
        if (done || value === undefined) return
        heard += value
      }
    })()
    await eventually(() => heard.includes('event: ready'), { what: 'the watch to begin' })
    await control.fetch('/api/file?path=seen.txt', { method: 'PUT', json: { content: 'a needle' } })
    await eventually(() => heard.includes('seen.txt'), { what: 'the change event' })
    await reader?.cancel()
    await listening
    const found = await (await control.fetch(`${W}/search?q=needle&path=.`)).text()
    expect(found).toContain('"path":"seen.txt"')
    expect(found.trimEnd().split('\n').at(-1)).toContain('"type":"end"')
  })

  test(
    'receives and sends large files without buffering in control',
    async () => {
      const before = peakMib()
      const part = pattern(MIB)
      let left = LARGE_MIB
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          await Bun.sleep(0)
          if (left === 0) return controller.close()
          left -= 1
          controller.enqueue(part)
        },
      })
      const put = await control.fetch(`${W}/file?path=large`, { method: 'PUT', body })
      expect(await put.json()).toMatchObject({ size: LARGE_MIB * MIB })
      let bytes = 0
      const chunks: ReadableStream<Uint8Array> | null = (await control.fetch(`${W}/file?path=large`)).body
      for await (const chunk of chunks ?? []) bytes += chunk.byteLength
      expect(bytes).toBe(LARGE_MIB * MIB)
      expect(peakMib() - before).toBeLessThan(HEADROOM_MIB)
    },
    TIMEOUT_MS,
  )
})
