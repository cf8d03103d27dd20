import { expect, test } from 'bun:test'
import {
  createParametersOf,
  formatAttachQuery,
  limitTimeout,
  parseAttachQuery,
  parseCreateBody,
} from './session-parameters.ts'

const createId = '00112233445566778899aabbccddeeff'

test('parseCreateBody decodes every field', () => {
  expect(
    parseCreateBody({
      createId,
      cmd: 'sh',
      args: ['-c', 'true'],
      mode: 'pty',
      cwd: 'src',
      env: { A: 'b' },
      cols: 100,
      rows: 30,
      keep: 5,
      lifetime: 3600,
      idle: 600,
      overflow: 'block',
      pin: true,
    }),
  ).toEqual({
    createId,
    env: { A: 'b' },
    cols: 100,
    rows: 30,
    create: {
      argv: ['sh', '-c', 'true'],
      pane: undefined,
      mode: 'pty',
      cwd: 'src',
      keepSeconds: 5,
      lifetimeSeconds: 3600,
      idleSeconds: 600,
      overflow: 'block',
      isPinned: true,
    },
  })
})

const REFUSED: readonly unknown[] = [
  null,
  [],
  'text',
  {},
  { createId: 'x' },
  { createId, pin: 1 },
  { createId, cmd: '' },
  { createId, cmd: ['sh'] },
  { createId, cmd: 'a\0' },
  { createId, args: ['x'] },
  { createId, cmd: 'sh', args: [1] },
  { createId, cmd: 'sh', args: 'x' },
  { createId, mode: 'tty' },
  { createId, cwd: 1 },
  { createId, env: [] },
  { createId, env: { 'A B': 'x' } },
  { createId, env: { A: 1 } },
  { createId, cols: 0 },
  { createId, cols: '80' },
  { createId, rows: 1e9 },
  { createId, keep: 0 },
  { createId, keep: 1.5 },
  { createId, lifetime: 0 },
  { createId, idle: 1e9 },
  { createId, unknown: 1 },
  JSON.parse(`{"createId":"${createId}","__proto__":{"mode":"pty"}}`),
]

test.each(REFUSED.map((body) => [JSON.stringify(body), body]))('parseCreateBody refuses %s', (_, body) => {
  expect(() => parseCreateBody(body)).toThrow('Cannot')
})

test('parseCreateBody keeps an environment variable called __proto__', () => {
  const body: unknown = JSON.parse(`{"createId":"${createId}","env":{"__proto__":"x"}}`)
  expect(Object.entries(parseCreateBody(body).env)).toEqual([['__proto__', 'x']])
})

test('formatAttachQuery writes parameters in canonical order', () => {
  const query = parseAttachQuery(new URLSearchParams('arg=-c&sandbox=dev&mode=pty&cmd=sh&arg=a+b'), 'v1')
  expect(formatAttachQuery(query).toString()).toBe('sandbox=dev&cmd=sh&arg=-c&arg=a+b&mode=pty')
  expect(formatAttachQuery(query, ['sandbox']).toString()).toBe('cmd=sh&arg=-c&arg=a+b&mode=pty')
})

test('[C14] [C15] an attach of either dialect may set timeouts of the session that it creates', () => {
  const query = new URLSearchParams({ lifetime: '3600', idle: '60' })
  for (const dialect of ['v1', 'plain'] as const)
    expect(createParametersOf(parseAttachQuery(query, dialect), dialect)).toMatchObject({
      lifetimeSeconds: 3600,
      idleSeconds: 60,
    })
  for (const refused of [{ idle: '0' }, { lifetime: '-1' }, { lifetime: '1', session: 's' }])
    expect(() => parseAttachQuery(new URLSearchParams(refused), 'v1')).toThrow('Cannot use parameter')
})

test('limitTimeout applies the limit of the operator to every session', () => {
  expect([undefined, 5, 50].map((requested) => limitTimeout(requested, 0))).toEqual([undefined, 5, 50])
  expect([undefined, 5, 50].map((requested) => limitTimeout(requested, 10))).toEqual([10, 5, 10])
})

test('a pane takes the place of command, mode and folder', () => {
  const create = (query: string) =>
    createParametersOf(parseAttachQuery(new URLSearchParams(query), 'v1'), 'v1')
  expect(create('pane=%253')).toMatchObject({ pane: '%3', argv: [], mode: 'pty', overflow: 'trim' })
  for (const query of ['pane=3', 'pane=%253&cmd=sh', 'pane=%253&mode=pipe', 'pane=%253&cwd=src'])
    expect(() => create(query)).toThrow('Cannot use parameter')
  expect(parseCreateBody({ createId, pane: '%3' }).create).toMatchObject({ pane: '%3', mode: 'pty' })
  for (const fields of [{ pane: '3' }, { pane: '%3', cmd: 'sh' }, { pane: '%3', cwd: 'src' }])
    expect(() => parseCreateBody({ createId, ...fields })).toThrow('Cannot use field')
})
