import { type SegmentStore, storeUnavailable } from '../../../src/versions/segment-store.ts'
import type { Simulator } from './sandbox-model.ts'

/** A store of segments in memory. */
export function openStoreModel(
  objects: Map<string, Uint8Array<ArrayBuffer>>,
  call: Simulator['call'],
): SegmentStore {
  return {
    put: (key, body, facts) =>
      call('store put', async () => {
        const bytes = new Uint8Array(await new Response(body).arrayBuffer())
        if (bytes.byteLength !== facts.sizeBytes) throw storeUnavailable('it ended early')
        objects.set(key, bytes)
      }),
    get: (key, range) =>
      call('store get', () => {
        const bytes = objects.get(key)
        return bytes === undefined ? undefined : streamOf(bytes.slice(range?.start, range?.end))
      }),
    delete: (key) => call('store delete', () => void objects.delete(key)),
    list: (prefix) => call('store list', () => [...objects.keys()].filter((key) => key.startsWith(prefix))),
  }
}

function streamOf(bytes: Uint8Array<ArrayBuffer>): ReadableStream {
  const { body } = new Response(bytes)
  if (body === null) throw new Error('There is no body')
  return body
}
