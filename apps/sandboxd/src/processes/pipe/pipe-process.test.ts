import { eventually } from '@sandwire/testing'
import { expect, test } from 'bun:test'
import { record, shell } from '../recorded-process.fixture.ts'
import { createStartProcess } from '../start-process.ts'

const start = createStartProcess()

test('a pipe process keeps stdout and stderr apart', async () => {
  const run = record(start, shell('echo out; echo err >&2'))
  await run.ended
  expect(run.text()).toBe('out\n')
  expect(run.errorText()).toBe('err\n')
})

test('a pipe process can open its streams by path', async () => {
  const run = record(start, shell('cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr'))
  run.process.write(new TextEncoder().encode('in\n'))
  run.process.closeInput()
  await run.ended
  expect(run.text()).toBe('in\nout\n')
  expect(run.errorText()).toBe('err\n')
})

test('a pipe process that closed stdin settles everything, once closed', async () => {
  const run = record(start, shell('exec 0<&-; echo ready; exec sleep 60'))
  await eventually(() => run.text() === 'ready\n', { what: 'the child to close stdin' })
  run.process.write(new Uint8Array(10))
  run.process.write(new Uint8Array(20))
  expect(run.settledBytes()).toBe(30)
  await run.process.terminate()
  await run.ended
  expect(run.events.filter((event) => event === 'inputClosed')).toHaveLength(1)
})

test('a pipe process that exits with input queued settles everything', async () => {
  const run = record(start, shell('head -c 100000 >/dev/null'))
  run.process.write(new Uint8Array(3_000_000))
  await run.ended
  expect(run.settledBytes()).toBe(3_000_000)
  expect(run.events).toContain('inputClosed')
})

test('a pipe process ends only when both streams have ended', async () => {
  const run = record(start, shell('{ sleep 0.2; echo late >&2; } >/dev/null & exit 4'))
  expect(await run.ended).toEqual({ code: 4, signal: null, truncated: false })
  expect(run.errorText()).toBe('late\n')
})

test('a pipe process has no controlling terminal and leads its session', async () => {
  const run = record(start, shell('ps -o pid=,pgid=,sid=,tty= -p $$'))
  await run.ended
  const pid = String(run.process.pid)
  expect(run.text().trim().split(/\s+/)).toEqual([pid, pid, pid, '?'])
})
