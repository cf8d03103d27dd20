import { expect, test } from 'bun:test'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { listOpenFiles, sumOnce } from './open-files.ts'

test('a file that was deleted and is held open is found, and counted once (threat T32)', () => {
  const file = path.join(tmpdir(), `open-${crypto.randomUUID()}`)
  const fds = [openSync(file, 'w'), openSync(file, 'r')]
  writeSync(fds[0] ?? -1, new Uint8Array(65_536))
  rmSync(file)
  const found = listOpenFiles(process.pid, 'all').filter(({ isNamed, isMemory, bytes }) => {
    return !isNamed && !isMemory && bytes === 65_536
  })
  for (const fd of fds) closeSync(fd)
  expect(found).toHaveLength(2)
  expect(sumOnce(found)).toBe(65_536)
})

test('memory that is held open and mapped by nobody is found (threat T32)', async () => {
  const script =
    'import os; fd = os.memfd_create("x"); os.write(fd, b"x" * 65536); print(flush=True); input()'
  const child = Bun.spawn(['python3', '-c', script], { stdin: 'pipe', stdout: 'pipe' })
  await child.stdout.getReader().read()
  expect(sumOnce(listOpenFiles(child.pid, 'memory'))).toBe(65_536)
  child.kill('SIGKILL')
  await child.exited
})

test('a process that is gone holds nothing', () => {
  expect(listOpenFiles(2 ** 30, 'all')).toEqual([])
})
