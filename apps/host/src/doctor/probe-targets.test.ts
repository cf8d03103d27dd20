import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { eventually, isAlive, readDescendants } from '@sandwire/testing'
import { openProbeTargets } from './probe-targets.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'targets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('leaves no process and no file', async () => {
  const token = crypto.randomUUID()
  const before = new Set(readDescendants(process.pid).map(({ pid }) => pid))
  const targets = await openProbeTargets(folder, token)
  const own = (): number[] =>
    readDescendants(process.pid).flatMap(({ pid }) => (before.has(pid) ? [] : [pid]))
  await eventually(() => own().some((pid) => commandOf(pid).includes(token)), { what: 'the decoy' })
  const pids = own()
  await targets[Symbol.asyncDispose]()
  expect(pids.filter(isAlive)).toEqual([])
  expect(readdirSync(folder)).toEqual([])
})

function commandOf(pid: number): string {
  return Bun.spawnSync(['cat', `/proc/${pid}/cmdline`]).stdout.toString()
}
