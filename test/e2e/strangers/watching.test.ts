import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import {
  createDataFolder,
  findStarterProblem,
  IsolatedSandbox,
  removeDataFolder,
  type Starter,
} from '../support/isolation/isolated.ts'

/** Files, folders and devices of this machine that every sandbox has. */
const FILES = [
  '/usr',
  '/usr/bin',
  '/usr/bin/true',
  '/etc',
  '/etc/ld.so.cache',
  '/etc/ssl/certs',
  '/etc/alternatives',
  '/opt/sandwire',
  '/opt/sandwire/executable',
  '/opt/sandwire/code',
  '/opt/sandwire/code/stand-in.ts',
]
const DEVICES = ['/dev', '/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom', '/dev/ptmx']

/** Prints every path that another process opened, read or executed within a second. */
const WATCH = `import ctypes, os, struct, sys, time
libc = ctypes.CDLL('libc.so.6')
fd = libc.inotify_init1(os.O_NONBLOCK)
names = {}
for name in sys.argv[1:]:
    names[libc.inotify_add_watch(fd, name.encode(), 0xfff)] = name
assert -1 not in names, names
time.sleep(1.2)
seen = set()
try:
    while True:
        data = os.read(fd, 65536)
        while data:
            wd, mask, _, size = struct.unpack('iIII', data[:16])
            seen.add('%s %x %s' % (names[wd], mask, data[16:16 + size].rstrip(bytes(1)).decode()))
            data = data[16 + size:]
except BlockingIOError: pass
print('\\n'.join(sorted(seen)))
`

/** Uses each of the paths. */
const USE = `for f in ${[...FILES, ...DEVICES.slice(1)].join(' ')}; do ls $f; : < $f; done >/dev/null 2>&1; /usr/bin/true`

/** Uses the paths in the other sandbox and on this machine. */
async function use(neighbor: IsolatedSandbox): Promise<void> {
  await neighbor.run(USE)
  Bun.spawnSync(['sh', '-c', USE])
}

/** Events that a process of the sandbox sees meanwhile. Nothing else runs in the sandbox. */
async function watchWhile(
  watcher: IsolatedSandbox,
  paths: readonly string[],
  act: () => Promise<void>,
): Promise<string> {
  await watcher.run(`cat > watch.py <<'END'\n${WATCH}\nEND`)
  const watched = watcher.run(`python3 watch.py ${paths.map((each) => `'${each}'`).join(' ')}`)
  await Bun.sleep(300)
  await act()
  const { stdout, stderr } = await watched
  return stdout + stderr
}

for (const starter of ['root', 'nobody'] satisfies Starter[]) {
  const problem = await findStarterProblem(starter)

  describe.skipIf(problem !== undefined)(`sandboxes started by ${starter}`, () => {
    let data = ''
    let watcher: IsolatedSandbox
    let neighbor: IsolatedSandbox
    beforeAll(async () => {
      data = createDataFolder(starter)
      watcher = await IsolatedSandbox.start(starter, data)
      neighbor = await IsolatedSandbox.start(starter, data)
    })
    afterAll(async () => {
      await watcher[Symbol.asyncDispose]()
      await neighbor[Symbol.asyncDispose]()
      removeDataFolder(data)
    })

    test('see no use of programs, files and devices by another sandbox or this machine', async () => {
      // Only root can create device nodes.
      const paths = starter === 'root' ? [...FILES, ...DEVICES] : FILES
      expect(await watchWhile(watcher, paths, () => use(neighbor))).toBe('\n')
    })

    test('run where overlays cannot be mounted', async () => {
      await using plain = await IsolatedSandbox.start(starter, data, { hasNoOverlays: true })
      const script =
        'id -u; git --version | cut -c1-3; test -e /etc/ssl/certs; cat /etc/hostname; echo x > /dev/null'
      expect(await plain.run(script)).toMatchObject({ code: 0, stdout: '1000\ngit\ndev\n' })
    })

    test('cannot see locks of another sandbox', async () => {
      const held = neighbor.run('exec 9</usr/bin/true; flock 9; touch held; sleep 1')
      while ((await neighbor.run('test -e held')).code !== 0) await Bun.sleep(10)
      expect(await watcher.run('exec 9</usr/bin/true; flock --nonblock 9')).toMatchObject({ code: 0 })
      await held
    })

    test('find neither the data folder nor devices of others in /proc', async () => {
      const mounts = (await watcher.run('cat /proc/self/mountinfo')).stdout.split('\n')
      const revealing = mounts.filter((line) => line.includes(data) || line.includes(neighbor.id))
      // Without a disk image, workspace, home and sandboxd's own files are folders of the data folder.
      const own = revealing.filter((line) => / \/(workspace|home\/user|var\/lib\/sandwire) /.test(line))
      expect(revealing.filter((line) => !own.includes(line))).toEqual([])
      if (starter === 'root') expect(own).toEqual([])
      expect(readFileSync('/proc/partitions', 'utf8')).not.toBe('')
      const files = '/proc/diskstats /proc/partitions /proc/swaps /proc/interrupts /proc/key-users'
      expect(await watcher.run(`cat ${files}; ls /proc/fs /proc/irq`)).toMatchObject({
        stdout: '/proc/fs:\n\n/proc/irq:\n',
      })
    })
  })
}
