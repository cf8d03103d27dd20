import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HostStore } from '../../apps/control/src/versions/host-store.ts'
import { FolderStore } from '../../apps/host/src/store/folder-store.ts'
import { serveStore } from '../../apps/host/src/store/store-server.ts'
import { createLog } from '../../apps/host/src/log.ts'
import { rejectionOf } from '@sandwire/testing'
import { S3_KEYS, startS3 } from './support/s3-server.ts'
import { StoreInWorkerd } from './support/store-in-workerd.ts'
import { describeSegmentStore } from './support/segment-store-contract.ts'

describeSegmentStore('in a folder of the host', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-store-'))
  const store = new FolderStore(join(folder, 'objects'))
  await store.open()
  const socket = join(folder, 'store.sock')
  const server = serveStore({
    socket,
    store,
    folder,
    admit: () => undefined,
    log: createLog(
      () => undefined,
      () => new Date(),
    ),
  })
  const client = new HostStore((url, init) => fetch(url, { ...init, unix: socket }))
  return Object.assign(client, {
    [Symbol.asyncDispose]: async () => {
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  })
})

test('the folder of a host that takes a segment and never answers is given up', async () => {
  const signals: AbortSignal[] = []
  const store = new HostStore(
    (_, { signal }) => {
      if (signal !== null && signal !== undefined) signals.push(signal)
      return new Promise(() => undefined)
    },
    () => 10,
  )
  const facts = { sizeBytes: 1, sha256: '0'.repeat(64) }
  expect(await rejectionOf(store.put('segments/a1/b1', Buffer.from('a'), facts))).toMatchObject({
    code: 'store_unavailable',
  })
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
})

describeSegmentStore('in R2', () => StoreInWorkerd.open({ r2Buckets: ['FILES'] }))

const S3_SETTINGS = { region: 'us-east-1', bucket: 'versions', prefix: 'some/prefix' }
const LOCAL_NETWORK = { serviceBindings: { S3: { network: { allow: ['local'], deny: [] } } } }

describeSegmentStore('in an S3-compatible service', async () => {
  const server = await startS3(S3_SETTINGS.bucket)
  const { endpoint } = server
  return StoreInWorkerd.open(
    { bindings: { SETTINGS: { ...S3_SETTINGS, ...S3_KEYS, endpoint } }, ...LOCAL_NETWORK },
    async () => server[Symbol.asyncDispose](),
  )
})

describe('the store in an S3-compatible service', () => {
  const facts = { sizeBytes: 4, sha256: new Bun.CryptoHasher('sha256').update('same').digest('hex') }

  test('gives up a service that never answers, and does not ask again', async () => {
    let requests = 0
    using silent = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () => {
        requests += 1
        return new Promise<Response>(() => undefined)
      },
    })
    const endpoint = `http://127.0.0.1:${silent.port}`
    await using store = await StoreInWorkerd.open({
      bindings: { SETTINGS: { ...S3_SETTINGS, ...S3_KEYS, endpoint, timeoutMs: 200 } },
      ...LOCAL_NETWORK,
    })
    expect(await rejectionOf(store.put('segments/a1/b1', Buffer.from('same'), facts))).toMatchObject({
      code: 'store_unavailable',
    })
    expect(requests).toBe(1)
  })

  test('says what to check when access is refused or the bucket is missing', async () => {
    await using server = await startS3(S3_SETTINGS.bucket)
    const { endpoint } = server
    const open = (settings: object) =>
      StoreInWorkerd.open({
        bindings: { SETTINGS: { ...S3_SETTINGS, ...S3_KEYS, endpoint, ...settings } },
        ...LOCAL_NETWORK,
      })
    await using wrongKey = await open({ secretAccessKey: 'wrong' })
    await using noBucket = await open({ bucket: 'none' })
    expect(await rejectionOf(wrongKey.put('segments/a1/b1', Buffer.from('same'), facts))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('access key'),
    })
    for (const rejected of [noBucket.list('segments/'), noBucket.get('segments/a1/b1')])
      expect(await rejectionOf(rejected)).toMatchObject({
        code: 'store_unavailable',
        message: expect.stringContaining('name of the bucket'),
      })
  })

  /** A service that answers as the test says, and what it received. */
  async function openScripted(answer: (method: string, count: number) => Response) {
    const received: { method: string; path: string; headers: Record<string, string> }[] = []
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: async ({ method, url, headers, body }) => {
        const path = new URL(url).pathname
        const count = received.push({ method, path, headers: Object.fromEntries(headers) })
        if (body !== null) await new Response(body).bytes()
        return answer(method, count)
      },
    })
    const endpoint = `http://127.0.0.1:${server.port}`
    const store = await StoreInWorkerd.open(
      { bindings: { SETTINGS: { ...S3_SETTINGS, ...S3_KEYS, endpoint } }, ...LOCAL_NETWORK },
      () => server.stop(true),
    )
    return Object.assign(store, { received })
  }

  test('tries reads and deletions again when the service is overloaded, and gives up after three times', async () => {
    await using store = await openScripted((_, count) =>
      count === 3 ? new Response('content') : new Response(null, { status: count % 2 === 0 ? 503 : 429 }),
    )
    const body = await store.get('segments/a1/b1')
    expect(body === undefined ? undefined : await new Response(body).text()).toBe('content')
    expect(await rejectionOf(store.delete('segments/a1/b1'))).toMatchObject({ code: 'store_unavailable' })
    expect(store.received.map(({ method }) => method)).toEqual([
      ...Array.from({ length: 3 }, () => 'GET'),
      ...Array.from({ length: 3 }, () => 'DELETE'),
    ])
  })

  test('does not repeat a refused request, nor follow a redirect with its signature', async () => {
    await using store = await openScripted((method) =>
      method === 'GET'
        ? new Response(null, { status: 307, headers: { location: '/elsewhere' } })
        : new Response(null, { status: 403 }),
    )
    expect(await rejectionOf(store.get('segments/a1/b1'))).toMatchObject({
      message: expect.stringContaining('redirects'),
    })
    expect(await rejectionOf(store.delete('segments/a1/b1'))).toMatchObject({
      message: expect.stringContaining('refused access'),
    })
    expect(store.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /versions/some/prefix/segments/a1/b1',
      'DELETE /versions/some/prefix/segments/a1/b1',
    ])
  })

  test('signs the checksum and the size of what it stores, and accepts an object that a lost answer left', async () => {
    await using store = await openScripted((method, count) => {
      const headers = { 'x-amz-meta-sha256': facts.sha256, 'content-length': '4' }
      // The object is stored, and the answer says otherwise.
      if (method === 'PUT') return new Response(null, { status: 500 })
      return count === 1 ? new Response(null, { status: 404 }) : new Response('same', { headers })
    })
    expect(await rejectionOf(store.put('segments/a1/b1', Buffer.from('same'), facts))).toMatchObject({
      code: 'store_unavailable',
    })
    await store.put('segments/a1/b1', Buffer.from('same'), facts)
    expect(store.received[1]?.headers).toMatchObject({
      'content-length': '4',
      'if-none-match': '*',
      'x-amz-content-sha256': facts.sha256,
      authorization: expect.stringMatching(/SignedHeaders=[^,]*x-amz-content-sha256/),
    })
    expect(store.received.map(({ method }) => method)).toEqual(['HEAD', 'PUT', 'HEAD'])
  })
})
