import { closeSync, openSync } from 'node:fs'
import { expect, test } from 'bun:test'
import { eventually } from './eventually.ts'
import { isAlive, readDescendants, readProcessCounts, readProcessMemory } from './process-counts.ts'

test('readProcessCounts counts open file descriptors', () => {
  const before = readProcessCounts(process.pid).fds
  const fd = openSync('/dev/null', 'r')
  expect(readProcessCounts(process.pid).fds).toBe(before + 1)
  closeSync(fd)
  expect(readProcessCounts(process.pid).fds).toBe(before)
})

test('readProcessCounts distinguishes children, grandchildren and zombies', async () => {
  // The shell that forked `true` becomes `cat`, which never waits for it: a lasting zombie.
  const script = "true & (sh -c 'cat; :' <&3) & exec cat"
  const shell = Bun.spawn(['sh', '-c', `exec 3<&0; ${script}`], { stdin: 'pipe', stdout: 'ignore' })
  const counts = await eventually(
    () => {
      const now = readProcessCounts(shell.pid)
      return now.zombies === 1 && now.descendants >= 3 && now
    },
    { what: 'one zombie and a grandchild' },
  )
  expect(counts.children).toBe(2)
  const below = readDescendants(shell.pid).filter((entry) => entry.state !== 'Z')
  expect(below.every((entry) => isAlive(entry.pid))).toBe(true)
  await shell.stdin.end()
  await shell.exited
  await eventually(() => below.every((entry) => !isAlive(entry.pid)), { what: 'the descendants to end' })
  expect(isAlive(shell.pid)).toBe(false)
})

test('readProcessMemory counts memory once it is touched', async () => {
  const script = `
    process.stdout.write('small')
    process.stdin.once('data', () => {
      globalThis.kept = new Uint8Array(64 << 20).fill(1)
      process.stdout.write('large')
    })`
  const child = Bun.spawn([process.execPath, '-e', script], { stdin: 'pipe', stdout: 'pipe' })
  const output = child.stdout.getReader()
  await output.read()
  const before = readProcessMemory(child.pid)
  expect(before.pssBytes).toBeLessThanOrEqual(before.rssBytes)
  await child.stdin.write('go')
  await child.stdin.flush()
  await output.read()
  const after = readProcessMemory(child.pid)
  expect(after.rssBytes - before.rssBytes).toBeGreaterThan(60 << 20)
  expect(after.pssBytes - before.pssBytes).toBeGreaterThan(60 << 20)
  child.kill()
  await child.exited
})
