import { expect, test } from 'bun:test'
import { attachUrl } from './attach-url.ts'

const FRESH = { createId: 'c', session: undefined }

test.each([
  ['http://h', 'ws://h/attach'],
  ['https://h/', 'wss://h/attach'],
  ['ws://h/x', 'ws://h/x'],
  ['wss://h:1/attach?keep=1', 'wss://h:1/attach'],
])('attachUrl turns %s into %s', (base, href) => {
  const url = attachUrl(base, {}, FRESH)
  expect(`${url.origin === 'null' ? `${url.protocol}//${url.host}` : url.origin}${url.pathname}`).toBe(href)
  expect(url.searchParams.get('createId')).toBe('c')
})

test('attachUrl includes every parameter of a new process', () => {
  const request = {
    cmd: 'sh',
    args: ['-c', 'a b&c=d'],
    mode: 'pty',
    cwd: 'x y',
    keepSeconds: 0,
    overflow: 'trim',
    pin: true,
  } as const
  const query = attachUrl('http://h', { ...request, sandbox: 's', role: 'viewer' }, FRESH).searchParams
  expect(query.getAll('arg')).toEqual(['-c', 'a b&c=d'])
  expect(Object.fromEntries(query)).toMatchObject({
    cmd: 'sh',
    mode: 'pty',
    cwd: 'x y',
    keep: '0',
    overflow: 'trim',
    pin: '1',
    sandbox: 's',
    role: 'viewer',
  })
})

test('attachUrl includes a template and its parameters without a mode', () => {
  const request = { template: 'build', params: { target: 'a=b&c', x: '' }, mode: 'pty' } as const
  const query = attachUrl('http://h', request, FRESH).searchParams
  expect(query.get('template')).toBe('build')
  expect(query.getAll('param')).toEqual(['target=a=b&c', 'x='])
  expect(query.has('mode')).toBe(false)
  const again = attachUrl('http://h', request, { createId: 'c', session: 'id' }).searchParams
  expect(Object.fromEntries(again)).toEqual({ session: 'id' })
})

test('attachUrl includes create=0 only when it starts a process', () => {
  const at = (create: boolean | undefined, session?: string) =>
    attachUrl('http://h', create === undefined ? {} : { create }, {
      createId: 'c',
      session,
    }).searchParams.get('create')
  expect([at(undefined), at(true), at(false), at(false, 's')]).toEqual([null, null, '0', null])
})

test('attachUrl includes only the session once it is known', () => {
  const request = {
    cmd: 'sh',
    args: ['x'],
    mode: 'pty',
    keepSeconds: 5,
    sandbox: 's',
    role: 'driver',
  } as const
  const query = attachUrl('http://h', request, { createId: 'c', session: 'id' }).searchParams
  expect(Object.fromEntries(query)).toEqual({ sandbox: 's', role: 'driver', session: 'id' })
  const joined = attachUrl('http://h', { session: 'asked', cmd: 'sh' }, FRESH).searchParams
  expect(Object.fromEntries(joined)).toEqual({ session: 'asked' })
})

test('attachUrl takes the lease on the first connection only', () => {
  const request = { session: 'id', take: true }
  expect(attachUrl('http://h', request, FRESH).searchParams.get('take')).toBe('1')
  expect(attachUrl('http://h', request, { createId: 'c', session: 'id' }).searchParams.has('take')).toBe(
    false,
  )
})
