import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { isTag, readTag, tagOf, withTag } from './process-tag.ts'

function hasTag(pid: number, tag: bigint): boolean {
  return readTag(readFileSync(`/proc/${pid}/limits`, 'latin1')) === String(tag)
}

test('tagOf gives each marker a distinct value above any real limit', () => {
  const tags = Array.from({ length: 1_000 }, (_, index) => tagOf(`session-${index}`))
  expect(new Set(tags).size).toBe(1_000)
  for (const tag of tags) expect(isTag(String(tag))).toBe(true)
  for (const value of [undefined, '0', String((1n << 51n) - 1n), String(1n << 52n), String((1n << 64n) - 1n)])
    expect(isTag(value)).toBe(false)
  expect(tagOf('session-1')).toBe(tags[1] ?? 0n)
})

test('withTag tags only processes started inside it', async () => {
  const tag = tagOf('a')
  const inside = withTag(tag, () => Bun.spawn(['env', '-i', 'setsid', '-w', 'sleep', '60']))
  const outside = Bun.spawn(['sleep', '60'])
  expect([inside.pid, outside.pid, process.pid].map((pid) => hasTag(pid, tag))).toEqual([true, false, false])
  expect(hasTag(inside.pid, tagOf('b'))).toBe(false)
  for (const child of [inside, outside]) child.kill('SIGKILL')
  await Promise.all([inside.exited, outside.exited])
})

test('withTag restores the limit when the action throws', () => {
  const tag = tagOf('c')
  expect(() =>
    withTag(tag, () => {
      throw new Error('no')
    }),
  ).toThrow('no')
  expect(hasTag(process.pid, tag)).toBe(false)
})
