import { expect, test } from 'bun:test'
import { ApiError } from '../api/request.ts'
import type { writeFile } from '../api/workspace.ts'
import { Uploads } from './uploads.ts'

type Write = typeof writeFile

const files = (...sizes: readonly number[]) =>
  sizes.map((size, at) => ({ path: `f${at}`, file: new File(['x'.repeat(size)], `f${at}`) }))
const request = { sandbox: 's', folder: 'in', replaces: false }

test('reports the progress of all files together until the end', async () => {
  const shares: number[] = []
  const write: Write = async (_, path, body, condition, way) => {
    expect([path.startsWith('in/'), condition]).toEqual([true, 'new'])
    way?.onSent?.((body as Blob).size / 2)
    shares.push(uploads.running.get()[0]?.sentBytes ?? -1)
    return ''
  }
  const uploads = new Uploads(write)
  const end = uploads.start({ ...request, files: files(100, 200) })
  expect(uploads.running.get()[0]).toMatchObject({ text: 'Uploading 2 files', totalBytes: 300 })
  expect(await end).toEqual({ kind: 'info', text: 'Uploaded 2 files' })
  expect(shares).toEqual([50, 200])
  expect(uploads.running.get()).toEqual([])
})

test('skips existing files and names them', async () => {
  const uploads = new Uploads(async (_, path) => {
    if (path === 'in/f0') throw new ApiError('file_changed', 'there', 412)
    return ''
  })
  expect(await uploads.start({ ...request, files: files(1, 1) })).toEqual({
    kind: 'info',
    text: 'Uploaded 1 file; skipped 1 that already existed: f0',
  })
  const none = new Uploads(() => Promise.reject(new ApiError('file_changed', 'there', 412)))
  expect(await none.start({ ...request, files: files(1, 1, 1, 1, 1) })).toEqual({
    kind: 'error',
    text: 'Uploaded 0 files; skipped 5 that already existed: f0, f1, f2, and 2 more',
  })
})

test('names the file that failed and counts the uploaded ones', async () => {
  const uploads = new Uploads(async (_, path) => {
    if (path === 'in/f1') throw new ApiError('no_space', 'The disk is full', 507)
    return ''
  })
  expect(await uploads.start({ ...request, files: files(1, 1, 1) })).toEqual({
    kind: 'error',
    text: 'Cannot upload f1: The disk is full (1 of 3 files uploaded)',
  })
})

test('stops when canceled', async () => {
  const second = Promise.withResolvers<void>()
  const uploads = new Uploads(
    (_, path, _body, _condition, way) =>
      new Promise((resolve, reject) => {
        if (path === 'in/f0') return resolve('')
        way?.signal?.addEventListener('abort', () => reject(new Error('stopped')))
        second.resolve()
      }),
  )
  const end = uploads.start({ ...request, files: files(1, 1) })
  await second.promise
  uploads.running.get()[0]?.stop()
  expect(await end).toEqual({ kind: 'info', text: 'Canceled: 1 of 2 files uploaded' })
})
