import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { readShell, runShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { UnaffectedSession } from './support/unaffected-session.ts'
import { canBecomeNobody } from './support/nobody.ts'

const MEBIBYTE = 1024 ** 2
const LIMITS = { memoryBytes: 128 * MEBIBYTE }
/** Shell scripts that allocate far more than the limit, and print `held` if they succeed. */
const HOARDS = [
  ['a file in /tmp', 'head -c 200000000 /dev/zero > /tmp/x && echo held'],
  ['a file in /dev/shm', 'head -c 200000000 /dev/zero > /dev/shm/x && echo held'],
  ['memory of a process', hoard('kept.append(b"x" * 4000000)')],
  ['memory that no process maps', hoard('os.write(fd, b"x" * 4000000)', 'fd = os.memfd_create("x")')],
  [
    'shared memory that no process has resident',
    hoard(
      'm = mmap.mmap(-1, 4000000); m.write(b"x" * 4000000); m.madvise(mmap.MADV_DONTNEED); kept.append(m)',
      'import mmap',
    ),
  ],
  [
    'segments that no process is attached to',
    `${hoard('c = libc.shmget(0, 4000000, 0o1600); a = libc.shmat(c, None, 0); c >= 0 and libc.memset(a, 1, 4000000); c >= 0 and libc.shmdt(a); c < 0 and os._exit(1)')}`,
  ],
] as const

/** Allocates in small steps, because the watchdog polls. */
function hoard(step: string, first = 'pass'): string {
  const prelude =
    'import ctypes, os, time; libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p; libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]; libc.shmdt.argtypes = [ctypes.c_void_p]; kept = []'
  return `python3 -c '${prelude}; ${first}\nfor i in range(100):\n ${step}; time.sleep(0.03)\ntime.sleep(2); print("held")'`
}

/** Lowers its OOM score as far as allowed, then allocates more than the limit in processes that are each slightly larger than sandboxd. */
const FEIGNED = `python3 -c '
import os, time
for score in (0, 100, 200):
  try:
    open("/proc/self/oom_score_adj", "w").write(str(score))
    break
  except OSError: pass
for i in range(8):
  if os.fork() == 0:
    kept = []
    for j in range(30):
      kept.append(b"x" * 4000000)
      time.sleep(0.02)
    time.sleep(5)
    os._exit(0)
while True:
  try: os.wait()
  except ChildProcessError: break
'`

const problem = await findBubblewrapProblem()

describe.skipIf(problem !== undefined).each(canBecomeNobody ? [false, true] : [false])(
  'a sandbox with a memory limit (unprivileged host: %p)',
  (isNobody) => {
    let deployment: Deployment
    let other: UnaffectedSession
    beforeAll(async () => {
      deployment = await Deployment.open({ isNobody })
      await deployment.create('small', { limits: LIMITS })
      other = await UnaffectedSession.open(deployment.sandbox('small'))
    })
    afterAll(async () => {
      await other[Symbol.asyncDispose]()
      await deployment[Symbol.asyncDispose]()
    })

    test.each(HOARDS)(
      'cannot exceed it with %s, and its other sessions survive (threat T32)',
      async (_, script) => {
        await using hog = runShell(deployment.sandbox('small'), `${script}; echo "over"`)
        const end = await hog.exit.catch(() => undefined)
        expect(hog.text).not.toContain('held')
        expect(end).toBeDefined()
        await other.check()
        expect(other.reconnections).toBe(0)
        await using cleaner = runShell(
          deployment.sandbox('small'),
          'rm -f /tmp/x /dev/shm/x; ipcrm -a; exit 0',
        )
        expect((await cleaner.exit).code).toBe(0)
      },
    )

    test('survives processes that lower their OOM score towards that of sandboxd (threat T32)', async () => {
      const { id } = await deployment.create('wide', { limits: { memoryBytes: 512 * MEBIBYTE } })
      const before = deployment.sandboxd(id)
      await using hog = runShell(deployment.sandbox('wide'), `${FEIGNED}; echo over`)
      await hog.exit.catch(() => undefined)
      expect(await readShell(deployment.sandbox('wide'), 'echo there')).toBe('there\n')
      expect(deployment.sandboxd(id)).toBe(before)
    })
  },
)
