import { expect, test } from 'bun:test'
import { hasTag, tagOf, withTag } from './process-tag.ts'

test('tagOf gives each marker a distinct value above any real limit', () => {
  const tags = Array.from({ length: 1_000 }, (_, index) => tagOf(`session-${index}`))
  expect(new Set(tags).size).toBe(1_000)
  for (const tag of tags) expect(tag >= 1n << 51n && tag < 1n << 52n).toBe(true)
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
  expect(hasTag(inside.pid, tag)).toBe(false)
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
