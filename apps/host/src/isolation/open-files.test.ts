import { expect, test } from 'bun:test'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { countKeptFiles, listOpenFiles, sumOnce } from './open-files.ts'

test('finds deleted files that are held open, and counts each once (threat T32)', () => {
  const file = path.join(tmpdir(), `open-${crypto.randomUUID()}`)
  const fds = [openSync(file, 'w'), openSync(file, 'r')]
  writeSync(fds[0] ?? -1, new Uint8Array(65_536))
  rmSync(file)
  const found = listOpenFiles(process.pid).filter(({ isNamed, bytes }) => !isNamed && bytes === 65_536)
  for (const fd of fds) closeSync(fd)
  expect(found).toHaveLength(2)
  expect(sumOnce(found)).toBe(65_536)
})

test('lists no open files for a process that ended', () => {
  expect(listOpenFiles(2 ** 30)).toEqual([])
})

/** Keeps two deleted files without a descriptor: one mapped, one in a message that is not received. */
const KEEP = `import array, ctypes, os, socket, sys
def deleted():
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); os.unlink(sys.argv[1]); os.write(fd, b"x" * 4096); return fd
libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p
fd = deleted(); libc.mmap(None, ctypes.c_size_t(4096), 1, 1, fd, ctypes.c_long(0)); os.close(fd)
one, other = socket.socketpair()
fd = deleted(); one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]); os.close(fd)
print(flush=True); input()`

test('counts files that a process keeps without a descriptor (threat T32)', async () => {
  expect(countKeptFiles([process.pid, 2 ** 30])).toBe(0)
  const file = path.join(tmpdir(), `kept-${crypto.randomUUID()}`)
  const child = Bun.spawn(['python3', '-c', KEEP, file], { stdin: 'pipe', stdout: 'pipe' })
  await child.stdout.getReader().read()
  expect(countKeptFiles([child.pid])).toBe(2)
  child.kill('SIGKILL')
  await child.exited
})
