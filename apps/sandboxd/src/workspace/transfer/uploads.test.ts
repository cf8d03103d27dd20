import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { archiveOf, Fixture, slices } from './transfer.fixture.ts'
import { unpack } from './unpack.ts'
import { Uploads } from './uploads.ts'

const ID = 'a'.repeat(32)
const OTHER = 'b'.repeat(32)
const HIDDEN = `.sandwire-upload-${ID}`
const A_DAY_AGO = Date.now() / 1000 - 25 * 3600

let fixture: Fixture
let uploads: Uploads
beforeEach(() => {
  fixture = new Fixture()
  uploads = new Uploads(fixture.files)
})
afterEach(() => fixture[Symbol.dispose]())

const bytes = (text: string): AsyncGenerator<Uint8Array> => slices(new TextEncoder().encode(text), 3)
const upload = { id: ID, path: 'dir/file' }

function codeOf(action: Promise<unknown>): Promise<string> {
  return action.then(
    () => 'done',
    (error: unknown) => SandwireError.from(error).code,
  )
}

test('pieces become a file that is visible when complete', async () => {
  mkdirSync(fixture.at('dir'))
  expect(await uploads.received(upload)).toBe(0)
  expect(await uploads.append(upload, 0, bytes('hello '))).toBe(6)
  expect(await uploads.received(upload)).toBe(6)
  expect(await uploads.append(upload, 6, bytes('world'))).toBe(11)
  expect(readdirSync(fixture.at('dir'))).toEqual([HIDDEN])
  const finished = { sizeBytes: 11, mode: 0o4751, mtimeNs: '1600000000500000000' }
  const stat = await uploads.finish(upload, finished)
  expect(stat).toMatchObject({ sizeBytes: 11, mode: 0o751, mtimeNs: '1600000000500000000' })
  expect(readdirSync(fixture.at('dir'))).toEqual(['file'])
  expect(readFileSync(fixture.at('dir/file'), 'utf8')).toBe('hello world')
  expect(await uploads.finish(upload, finished)).toEqual(stat)
})

test('repeating an upload replaces the file again', async () => {
  for (const text of ['first', 'other']) {
    const once = { id: ID, path: 'f' }
    await uploads.append(once, 0, bytes(text))
    await uploads.finish(once, { sizeBytes: 5 })
    expect(readFileSync(fixture.at('f'), 'utf8')).toBe(text)
  }
  expect(fixture.unfinished).toEqual([])
})

test('refuses a piece at a wrong offset and reports the received bytes', async () => {
  mkdirSync(fixture.at('dir'))
  await uploads.append(upload, 0, bytes('hello'))
  for (const offset of [0, 4, 6])
    expect(await uploads.append(upload, offset, bytes('x')).catch((error: unknown) => error)).toMatchObject({
      code: 'conflict',
      received: 5,
    })
  expect(await codeOf(uploads.finish(upload, { sizeBytes: 4 }))).toBe('conflict')
})

test('keeps the received bytes of an interrupted piece, for another process to continue', async () => {
  mkdirSync(fixture.at('dir'))
  async function* cut(): AsyncGenerator<Uint8Array> {
    yield* bytes('hello')
    throw new Error('The connection broke')
  }
  expect(await codeOf(uploads.append(upload, 0, cut()))).toBe('internal')
  const later = new Uploads(fixture.files)
  expect(await later.received(upload)).toBe(5)
  await later.append(upload, 5, bytes('!'))
  await later.finish(upload, { sizeBytes: 6 })
  expect(readFileSync(fixture.at('dir/file'), 'utf8')).toBe('hello!')
})

test('concurrent pieces are processed one after the other', async () => {
  mkdirSync(fixture.at('dir'))
  const both = await Promise.allSettled([
    uploads.append(upload, 0, bytes('first'.repeat(100))),
    uploads.append(upload, 0, bytes('second'.repeat(100))),
  ])
  expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  expect(readFileSync(fixture.at(`dir/${HIDDEN}`), 'utf8')).toBe('first'.repeat(100))
})

test('an empty file needs no piece, and a discarded upload is removed', async () => {
  mkdirSync(fixture.at('dir'))
  await uploads.finish(upload, { sizeBytes: 0 })
  expect(statSync(fixture.at('dir/file')).size).toBe(0)
  const other = { id: OTHER, path: 'dir/other' }
  await uploads.append(other, 0, bytes('x'))
  expect([await uploads.drop(other), await uploads.drop(other)]).toEqual([true, false])
  expect(readdirSync(fixture.at('dir'))).toEqual(['file'])
})

test('an upload does not replace a file that has changed', async () => {
  mkdirSync(fixture.at('dir/file'), { recursive: true })
  await uploads.append(upload, 0, bytes('x'))
  expect(await codeOf(uploads.finish(upload, { sizeBytes: 1 }))).toBe('is_a_folder')
  const other = { id: OTHER, path: 'f' }
  writeFileSync(fixture.at('f'), 'newer')
  await uploads.append(other, 0, bytes('x'))
  expect(await codeOf(uploads.finish(other, { sizeBytes: 1, ifMatch: ['older'] }))).toBe('file_changed')
  expect(readFileSync(fixture.at('f'), 'utf8')).toBe('newer')
})

test('writes an upload only into its own regular file (threat T13)', async () => {
  mkdirSync(fixture.at('dir'))
  symlinkSync('../../outside', fixture.at(`dir/${HIDDEN}`))
  expect(await codeOf(uploads.append(upload, 0, bytes('x')))).toBe('path_refused')
  Bun.spawnSync(['mkfifo', fixture.at(`.sandwire-upload-${OTHER}`)])
  expect(await codeOf(uploads.append({ id: OTHER, path: 'f' }, 0, bytes('x')))).toBe('special_file')
  for (const path of ['../planted', '/tmp/planted', 'a/../../planted', '.'])
    expect(await codeOf(uploads.append({ id: ID, path }, 0, bytes('x')))).toBe('path_refused')
  expect(fixture.isOutsideUntouched).toBe(true)
})

test('removes abandoned uploads after a day, when another starts in the folder', async () => {
  mkdirSync(fixture.at('dir'))
  const stale = fixture.at(`dir/.sandwire-upload-${'c'.repeat(32)}`)
  const fresh = fixture.at(`dir/.sandwire-upload-${'d'.repeat(32)}`)
  const unlike = fixture.at('dir/other')
  for (const path of [stale, fresh, unlike]) writeFileSync(path, '')
  for (const path of [stale, unlike]) utimesSync(path, A_DAY_AGO, A_DAY_AGO)
  await uploads.append(upload, 0, bytes('x'))
  expect([stale, fresh, unlike].map((path) => existsSync(path))).toEqual([false, true, true])
})

test('removes files and folders of interrupted writes and copies after a day', async () => {
  const partOf = (digit: string): string => fixture.at(`dir/.sandwire-${digit.repeat(24)}.part`)
  const [file, folder, fresh] = [partOf('a'), partOf('b'), partOf('c')]
  mkdirSync(join(folder, 'inner'), { recursive: true })
  for (const path of [file, join(folder, 'inner/x'), fresh]) writeFileSync(path, '')
  for (const path of [file, folder]) utimesSync(path, A_DAY_AGO, A_DAY_AGO)
  await uploads.append(upload, 0, bytes('x'))
  expect([file, folder, fresh].map((path) => existsSync(path))).toEqual([false, false, true])
})

// Only root may mount.
test.skipIf(process.getuid?.() !== 0)(
  'reports a full disk, and keeps the bytes received before',
  async () => {
    const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', fixture.root])
    expect(mounted.success).toBe(true)
    try {
      const whole = { id: ID, path: 'f' }
      expect(await codeOf(uploads.append(whole, 0, bytes('x'.repeat(200_000))))).toBe('disk_full')
      expect(await uploads.received(whole)).toBeGreaterThan(0)
      const archive = archiveOf([{ path: 'g', text: 'x'.repeat(100_000) }])
      expect(await codeOf(unpack(slices(archive), fixture.files, { folder: '.', depth: 0 }))).toBe(
        'disk_full',
      )
      expect(readdirSync(fixture.root)).toEqual([HIDDEN])
    } finally {
      // The thread has the folder open.
      Bun.spawnSync(['umount', '--lazy', fixture.root])
    }
  },
)
