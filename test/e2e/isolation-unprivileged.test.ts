import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import {
  asStarter,
  createDataFolder,
  findMarked,
  findStarterProblem,
  IsolatedSandbox,
  removeDataFolder,
  runFolderOf,
} from './support/isolation/isolated.ts'
import { dirname } from 'node:path'

const MEBIBYTE = 1024 ** 2
const problem = await findStarterProblem('nobody')

/** Makes the init of the sandbox, which has the same user, forget that it must die with its parent, and sleep forever. */
const REPLACE_INIT = `import os, struct
fields = open('/proc/1/syscall').read().split()
pc = int(fields[-1], 16)
# prctl(PR_SET_PDEATHSIG, 0); for (;;) pause();
code = bytes.fromhex('b89d000000bf0100000031f60f05b8220000000f05ebf7')
with open('/proc/1/mem', 'r+b', buffering=0) as memory:
    memory.seek(pc)
    memory.write(code)
print('written')
`

/** Allocates memory in many processes at once, which then sleep. */
const HOARD = `import os, time
for i in range(12):
    if os.fork() == 0:
        kept = bytearray(200 * 1024 * 1024)
        for at in range(0, len(kept), 4096): kept[at] = 1
        time.sleep(60)
        os._exit(0)
time.sleep(60)
`

/** Begins a Python script that hides its descriptors from other processes, and can put some into a socket's queue. */
const HIDE = `import array, ctypes, os, socket, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
def deleted():
    fd = os.open('/workspace/f', os.O_RDWR | os.O_CREAT)
    os.unlink('/workspace/f')
    return fd
def fill(fd, bytes):
    for _ in range(bytes // 4000000): os.write(fd, b'x' * 4000000)
    return fd
def queue(fd):
    pair = socket.socketpair()
    pair[0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))])
    os.close(fd)
    return pair
`

/** Removes a sandbox as a host does whose supervisor died. */
const REMOVE = `const { createBubblewrap } = await import(process.argv[1])
const [, , dataFolder, runBase, id] = process.argv
await createBubblewrap({ dataFolder, runBase, isRoot: false, program: { executable: process.execPath } }).remove(id)`

describe.skipIf(problem !== undefined)('a sandbox of an unprivileged user', () => {
  let data = ''
  beforeEach(() => {
    data = createDataFolder('nobody')
  })
  afterEach(() => removeDataFolder(data))

  test('loses every process above its memory limit at once (threat T32)', async () => {
    const mark = `6${String(Math.random()).slice(2, 10)}`
    await using sandbox = await IsolatedSandbox.start('nobody', data, {
      limits: { memoryBytes: 256 * MEBIBYTE },
    })
    const hoarding = sandbox.run(`python3 - ${mark} <<'END'\n${HOARD}\nEND`).catch(() => undefined)
    await eventually(() => findMarked(mark).length > 8, { what: 'the processes' })
    await eventually(() => findMarked(mark).length < 5, { what: 'their end' })
    await sandbox.run(`pkill -f ${mark}`).catch(() => undefined)
    await hoarding
  })

  test.each([
    ['files in memory', `fill(os.memfd_create('x'), 400000000)`],
    [
      'files in memory, in a queue',
      `kept = [queue(fill(os.memfd_create('x'), 40000000)) for _ in range(10)]`,
    ],
    [
      'queues of sockets',
      `kept = []
for i in range(2000):
    pair = socket.socketpair()
    pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    pair[0].setblocking(False)
    kept.append(pair)
    try:
        while True: pair[0].send(b'x' * 65536)
    except BlockingIOError: pass`,
    ],
    [
      'sets of semaphores',
      `libc = ctypes.CDLL(None)
for _ in range(500):
    if libc.semget(0, 32000, 0o1600) < 0: os._exit(1)`,
    ],
    [
      'page tables of memory that it only reads',
      `import mmap
kept = mmap.mmap(-1, 1 << 39, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
for at in range(0, len(kept), 1 << 21): kept[at]`,
    ],
  ])('cannot exceed its memory limit with %s (threat T32)', async (_, script) => {
    await using sandbox = await IsolatedSandbox.start('nobody', data, {
      limits: { memoryBytes: 256 * MEBIBYTE },
    })
    const run = await sandbox.run(`python3 - <<'END'\n${HIDE}${script}\ntime.sleep(5); print('held')\nEND`)
    expect(run.stdout).toBe('')
    expect(run.code).not.toBe(0)
  })

  test('is stopped when a process hides deleted files that exceed its disk limit (threat T32)', async () => {
    await using sandbox = await IsolatedSandbox.start('nobody', data, {
      limits: { diskBytes: 64 * MEBIBYTE },
    })
    const hoard = 'kept = [fill(deleted(), 40000000) for _ in range(4)]'
    await sandbox.run(`python3 - <<'END'\n${HIDE}${hoard}\ntime.sleep(60)\nEND`).catch(() => undefined)
    expect(await sandbox.await('ended')).toMatchObject({ reason: 'disk_full' })
  })

  test('is stopped when it has more names than its disk can have files (threat T32)', async () => {
    await using sandbox = await IsolatedSandbox.start('nobody', data, {
      limits: { diskBytes: 16 * MEBIBYTE },
    })
    const link = `python3 -c 'import os\nopen("f", "w").close()\nfor i in range(10000): os.link("f", "f%d" % i)'`
    await sandbox.run(`${link}; sleep 60`).catch(() => undefined)
    expect(await sandbox.await('ended')).toMatchObject({ reason: 'disk_full' })
  })

  test('cannot change the limits of sandboxd (threat T11)', async () => {
    await using sandbox = await IsolatedSandbox.start('nobody', data)
    expect((await sandbox.run('prlimit --pid 2 --nofile=10:10')).code).not.toBe(0)
    expect((await sandbox.run('prlimit --nofile=100:100 -- sh -c "ulimit -n"')).stdout).toBe('100\n')
    expect((await sandbox.run('prlimit --pid 2 --nofile --noheadings')).stdout).toContain('4096')
  })

  test.if(process.arch === 'x64')(
    'leaves no process, even if it changed its init and its supervisor was killed (threat T40)',
    async () => {
      const mark = `9${String(Math.random()).slice(2, 10)}`
      const sandbox = await IsolatedSandbox.start('nobody', data)
      await sandbox.run(`setsid -f sleep ${mark} </dev/null >/dev/null 2>&1`)
      expect((await sandbox.run(`python3 - <<'END'\n${REPLACE_INIT}\nEND`)).stdout).toBe('written\n')
      // Init resumes at the changed code when a child of it ends.
      await sandbox.run('(setsid true &)')
      sandbox.supervisor.kill('SIGKILL')
      await sandbox.supervisor.exited
      const runBase = dirname(runFolderOf('nobody', sandbox.id))
      const source = new URL('../../apps/host/src/isolation/bubblewrap.ts', import.meta.url).pathname
      const argv = [process.execPath, '-e', REMOVE, source, data, runBase, sandbox.id]
      expect(await Bun.spawn([...asStarter('nobody'), ...argv]).exited).toBe(0)
      expect(findMarked(mark)).toEqual([])
    },
  )
})
