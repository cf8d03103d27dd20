import { expect, test } from 'bun:test'
import { rejectionOf } from '@sandwire/testing'
import { S3Store } from '../src/versions/s3-store.ts'

const settings = { endpoint: 'http://s3.test', region: 'us-east-1', bucket: 'versions', prefix: '' }
const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' }

test('an S3-compatible service that never answers is given up at once', async () => {
  let requests = 0
  const store = new S3Store(settings, credentials, {
    fetch: () => {
      requests += 1
      return new Promise(() => undefined)
    },
    sleep: async () => undefined,
    random: () => 0,
    timeoutMs: () => 10,
  })
  const facts = { sizeBytes: 1, sha256: '0'.repeat(64) }
  expect(await rejectionOf(store.put('segments/a1/b1', Buffer.from('a'), facts))).toMatchObject({
    code: 'store_unavailable',
  })
  expect(requests).toBe(1)
})
