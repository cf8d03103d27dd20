import { expect, test } from 'bun:test'
import { decodeInotify, IN_CREATE } from './inotify.ts'

function encode(watch: number, mask: number, name: Uint8Array, fieldBytes: number): Uint8Array {
  const bytes = new Uint8Array(16 + fieldBytes)
  const view = new DataView(bytes.buffer)
  view.setInt32(0, watch, true)
  view.setUint32(4, mask, true)
  view.setUint32(8, 99, true)
  view.setUint32(12, fieldBytes, true)
  bytes.set(name, 16)
  return bytes
}

const NOTHING = Buffer.alloc(0)
const IS_FOLDER = 0x4000_0000

test('decodes several events, with names of any bytes', () => {
  const bytes = Buffer.concat([
    encode(1, IN_CREATE, Buffer.from('a\nb'), 16),
    encode(-1, 0x4000, NOTHING, 0),
    encode(2, IN_CREATE | IS_FOLDER, Uint8Array.of(0xff), 1),
  ])
  expect([...decodeInotify(bytes)]).toEqual([
    { kind: 'created', watch: 1, name: 'a\nb', isFolder: false },
    { kind: 'lost' },
    { kind: 'created', watch: 2, name: '\udcff', isFolder: true },
  ])
})

test.each<[string, number, 'x' | '', string | undefined]>([
  ['modified', 0x2, 'x', 'changed'],
  ['attributes', 0x4, 'x', 'changed'],
  ['attributes of the folder itself', 0x4, '', undefined],
  ['moved from', 0x40, 'x', 'removed'],
  ['moved to', 0x80, 'x', 'created'],
  ['created', 0x100, 'x', 'created'],
  ['removed', 0x200, 'x', 'removed'],
  ['removed itself', 0x400, '', 'gone'],
  ['moved itself', 0x800, '', 'gone'],
  ['unmounted', 0x2000, '', 'gone'],
  ['ignored', 0x8000, '', 'unwatched'],
  ['opened', 0x20, 'x', undefined],
])('decodes the flags of inotify(7): %s', (_, mask, name, kind) => {
  const [event] = decodeInotify(encode(1, mask, Buffer.from(name), name === '' ? 0 : 16))
  expect(event?.kind).toBe(kind as never)
})

test('ignores an incomplete event', () => {
  expect([...decodeInotify(new Uint8Array(15))]).toEqual([])
  expect([...decodeInotify(new Uint8Array())]).toEqual([])
})

test('bytes at any offset of a larger buffer are read', () => {
  const room = new Uint8Array(100)
  room.set(encode(7, IN_CREATE, Buffer.from('x'), 4), 3)
  expect([...decodeInotify(room.subarray(3, 23))]).toEqual([
    { kind: 'created', watch: 7, name: 'x', isFolder: false },
  ])
})
