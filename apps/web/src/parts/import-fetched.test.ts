import { afterEach, expect, spyOn, test } from 'bun:test'
import { importFetched } from './import-fetched.ts'

const fetching = spyOn(globalThis, 'fetch')
const answerWith = (answer: () => Promise<Response>): void => {
  fetching.mockImplementation(Object.assign(answer, { preconnect: () => undefined }))
}
afterEach(() => fetching.mockReset())

const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'none',
    (caught: unknown) => caught,
  )

test('imports a module after fetching all its files', async () => {
  answerWith(async () => new Response('code'))
  expect(await importFetched(async () => 'module', ['assets/a.js', 'assets/b.js'])).toBe('module')
  expect(fetching.mock.calls.map(([address]) => address)).toEqual(['/assets/a.js', '/assets/b.js'])
})

test('imports nothing while the server is unreachable, so that it can be retried', async () => {
  let imports = 0
  const load = async (): Promise<number> => (imports += 1)
  answerWith(() => Promise.reject(new TypeError('Failed to fetch')))
  expect(await failure(importFetched(load, ['assets/a.js']))).toMatchObject({ reason: 'unreachable' })
  answerWith(async () => new Response('', { status: 503 }))
  expect(await failure(importFetched(load, ['assets/a.js']))).toMatchObject({ reason: 'unreachable' })
  answerWith(async () => new Response('', { status: 404 }))
  expect(await failure(importFetched(load, ['assets/a.js']))).toMatchObject({ reason: 'gone' })
  expect(imports).toBe(0)
  answerWith(async () => new Response('code'))
  expect(await importFetched(load, ['assets/a.js'])).toBe(1)
})

test('treats an interrupted response as unreachable', async () => {
  const broken = new ReadableStream({ start: (controller) => controller.error(new Error('cut')) })
  answerWith(async () => new Response(broken))
  expect(await failure(importFetched(async () => 1, ['assets/a.js']))).toMatchObject({
    reason: 'unreachable',
  })
})

test('treats a file that is no module as another version', async () => {
  answerWith(async () => new Response('<!doctype html>'))
  const load = (): Promise<never> => Promise.reject(new TypeError('no module'))
  expect(await failure(importFetched(load, ['assets/a.js']))).toMatchObject({ reason: 'gone' })
})
