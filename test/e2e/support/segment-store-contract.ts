import { describe, expect, test } from 'bun:test'
import type { SegmentStore } from '../../../apps/control/src/versions/segment-store.ts'

async function bytesOf(stream: ReadableStream | undefined): Promise<string | undefined> {
  return stream === undefined ? undefined : Buffer.from(await new Response(stream).bytes()).toString('latin1')
}

function factsOf(text: string) {
  return { sizeBytes: text.length, sha256: new Bun.CryptoHasher('sha256').update(text).digest('hex') }
}

function streamOf(text: string): ReadableStream {
  const { body } = new Response(text)
  if (body === null) throw new Error('no body')
  return body
}

/** What every store of segments promises. */
export function describeSegmentStore(
  name: string,
  open: () => Promise<SegmentStore & AsyncDisposable>,
): void {
  describe(`the store ${name}`, () => {
    test('returns what was stored, whole and in parts', async () => {
      await using store = await open()
      const text = 'segment content'
      await store.put('segments/a1/b1', streamOf(text), factsOf(text))
      expect(await bytesOf(await store.get('segments/a1/b1'))).toBe(text)
      expect(await bytesOf(await store.get('segments/a1/b1', { start: 8, end: 15 }))).toBe('content')
      expect(await store.get('segments/a1/none')).toBeUndefined()
    })

    test('accepts a repeated put and refuses other content under the same key', async () => {
      await using store = await open()
      await store.put('segments/a1/b1', Buffer.from('same'), factsOf('same'))
      await store.put('segments/a1/b1', Buffer.from('same'), factsOf('same'))
      await expectRefusal(store.put('segments/a1/b1', Buffer.from('other'), factsOf('other')))
      expect(await bytesOf(await store.get('segments/a1/b1'))).toBe('same')
    })

    test('stores nothing when the content is not as announced', async () => {
      await using store = await open()
      await expectRefusal(store.put('segments/a1/b1', Buffer.from('damaged'), factsOf('correct')))
      await expectRefusal(store.put('segments/a1/b1', Buffer.from('long'), factsOf('longer')))
      expect(await store.get('segments/a1/b1')).toBeUndefined()
    })

    test('lists and deletes by prefix', async () => {
      await using store = await open()
      for (const key of ['segments/a1/b2', 'segments/a1/b1', 'segments/a2/b1'])
        await store.put(key, Buffer.from(key), factsOf(key))
      expect(await store.list('segments/a1/')).toEqual(['segments/a1/b1', 'segments/a1/b2'])
      expect(await store.list('segments/a1/', 'segments/a1/b1')).toEqual(['segments/a1/b2'])
      await store.delete('segments/a1/b1')
      await store.delete('segments/a1/b1')
      expect(await store.list('segments/a1/')).toEqual(['segments/a1/b2'])
      expect(await store.list('segments/a9/')).toEqual([])
    })
  })
}

async function expectRefusal(promise: Promise<unknown>): Promise<void> {
  await promise.then(
    () => expect.unreachable('it was accepted'),
    (error: unknown) =>
      expect(error).toMatchObject({ code: expect.stringMatching(/store_unavailable|conflict/) }),
  )
}
