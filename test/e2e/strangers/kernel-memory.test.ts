import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { eventually } from '@sandwire/testing'
import { canLimitDevices, detectCgroups } from '../../../apps/host/src/isolation/cgroups.ts'
import {
  createDataFolder,
  findStarterProblem,
  IsolatedSandbox,
  removeDataFolder,
  type Starter,
} from '../support/isolation/isolated.ts'

const cgroups = detectCgroups()
const MEBIBYTE = 1024 ** 2
const LIMITS = { memoryBytes: 256 * MEBIBYTE, diskBytes: 64 * MEBIBYTE }

/** Creates empty files until that fails, and removes them; prints how many there were and the error. */
const CREATE = `import errno, os, sys
folder, made, error = sys.argv[1] + '/many', 0, ''
os.mkdir(folder)
try:
    while made < 60000:
        os.close(os.open('%s/%d' % (folder, made), os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError as caught: error = errno.errorcode[caught.errno]
for name in range(made): os.unlink('%s/%d' % (folder, name))
os.rmdir(folder)
print(made, error)
`

/** Queues answers of the kernel in netlink sockets, more than the memory of the sandbox, until it is killed. */
const QUEUE = `import socket, struct, time
body = b'x' * 30000
message = struct.pack('IHHII', 16 + len(body), 999, 5, 1, 0) + body
kept = []
for each in range(2500):
    one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    kept.append(one)
    for sent in range(6): one.send(message)
print('queued', flush=True)
time.sleep(60)
`

const IO_SETUP = `import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
number = 206 if platform.machine() == 'x86_64' else 0
libc.syscall(number, 1, ctypes.byref(ctypes.c_ulong(0)))
print(errno.errorcode.get(ctypes.get_errno()))
`

for (const starter of ['root', 'nobody'] satisfies Starter[]) {
  const problem = await findStarterProblem(starter)

  describe.skipIf(problem !== undefined)(`a sandbox started by ${starter}`, () => {
    let data = ''
    let sandbox: IsolatedSandbox
    beforeAll(async () => {
      data = createDataFolder(starter)
      sandbox = await IsolatedSandbox.start(starter, data, { limits: LIMITS })
    })
    afterAll(async () => {
      await sandbox[Symbol.asyncDispose]()
      removeDataFolder(data)
    })

    test.each(['/tmp', '/dev/shm'])(
      'can create only as many files in %s as fit into its memory (threat T32)',
      async (folder) => {
        const { stdout } = await sandbox.run(`python3 - ${folder} <<'END'\n${CREATE}\nEND`)
        const [made, error] = stdout.trim().split(' ')
        expect(error).toBe('ENOSPC')
        expect(Number(made)).toBeLessThan(20_000)
        expect(Number(made)).toBeGreaterThan(4_000)
        expect((await sandbox.run(`echo alive; stat -c '%a %u' ${folder}`)).stdout).toStartWith(
          'alive\n1777 ',
        )
      },
    )

    test('is stopped from using more memory than its own in queues of netlink sockets (threat T32)', async () => {
      const { code } = await sandbox.run(`python3 - <<'END'\n${QUEUE}\nEND`)
      expect(code).toBe(137)
      expect((await sandbox.run('echo alive')).stdout).toBe('alive\n')
    })

    test('cannot take the contexts of asynchronous I/O that all sandboxes share (threat T32)', async () => {
      expect((await sandbox.run(`python3 - <<'END'\n${IO_SETUP}\nEND`)).stdout).toBe('ENOSYS\n')
    })

    test.if(starter === 'root' && canLimitDevices(cgroups))(
      'has a limit on the use of its disk',
      async () => {
        const file =
          cgroups === 'v1'
            ? `/sys/fs/cgroup/blkio/sandwire/${sandbox.id}/blkio.throttle.write_bps_device`
            : `/sys/fs/cgroup/sandwire/${sandbox.id}/io.max`
        await eventually(() => readFileSync(file, 'utf8').includes('67108864'), { what: 'the limit' })
        const device = (await sandbox.run('awk \'$5 == "/workspace" { print $3 }\' /proc/self/mountinfo'))
          .stdout
        expect(readFileSync(file, 'utf8')).toStartWith(device.trim())
      },
    )
  })
}
