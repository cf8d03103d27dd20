import { expect, test } from 'bun:test'
import { createLaunchArgv, createLaunchScript } from './launch-script.ts'
import { formatMountTable } from './mount-table.ts'

test('the launch script joins its cgroup first and runs bubblewrap with the given uid', () => {
  const script = createLaunchScript({
    joinFiles: ['/sys/fs/cgroup/pids/sandwire/ID/cgroup.procs'],
    mounting: {
      mounts: [
        { kind: 'image', from: '/data/ID.ext4', to: '/run/sandwire/ID/stage/disk', daemonId: 100_000 },
        { kind: 'devices', links: '/run/sandwire/ID/stage/links', to: '/run/sandwire/ID/stage/devices' },
      ],
      table: '/run/sandwire/ID/mounts',
      folder: "/srv/it's/cache",
    },
    hostId: 1_879_048_192,
    rlimits: ['--core=0:0'],
    oomScore: 200,
  })
  expect(script.split('\n')).toEqual([
    'set -e',
    '[ "$PPID" = "$0" ]',
    'echo $$ > /sys/fs/cgroup/pids/sandwire/ID/cgroup.procs',
    'echo 200 2>/dev/null > /proc/self/oom_score_adj || :',
    "cd '/srv/it'\\''s/cache'",
    'mount -a -T /run/sandwire/ID/mounts',
    'cd /',
    'chmod 755 /run/sandwire/ID/stage/disk/workspace /run/sandwire/ID/stage/disk/home',
    'mkdir -p /run/sandwire/ID/stage/disk/state',
    'chown 100000:100000 /run/sandwire/ID/stage/disk/state',
    'chmod 711 /run/sandwire/ID/stage/disk/state',
    'cp -a /run/sandwire/ID/stage/links/. /run/sandwire/ID/stage/devices',
    'cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /run/sandwire/ID/stage/devices 2>/dev/null || ' +
      'for name in null zero full random urandom tty; do : > /run/sandwire/ID/stage/devices/$name; ' +
      'mount --bind /dev/$name /run/sandwire/ID/stage/devices/$name; done',
    'mount -o remount,bind,ro /run/sandwire/ID/stage/devices',
    'exec prlimit --core=0:0 setpriv --pdeathsig KILL --reuid 1879048192 --regid 1879048192 --clear-groups -- "$@"',
  ])
})

test('mounts have the format of fstab, with quoted paths', () => {
  const table = formatMountTable([
    { kind: 'bind', from: '/srv/a b', to: '/to' },
    { kind: 'image', from: '/data/ID.ext4', to: '/disk', daemonId: 100_000 },
    { kind: 'terminals', to: '/terminals', max: 64 },
    { kind: 'overlay', layers: ['code:1,2', '/run/empty'], to: '/code' },
    { kind: 'memory', bytes: 4096, inodes: 7, owner: 9, to: '/tmp' },
    { kind: 'devices', links: '/links', to: '/devices' },
  ])
  expect(table.split('\n')).toEqual([
    '/srv/a\\040b /to none bind 0 0',
    '/data/ID.ext4 /disk ext4 loop,discard,nosuid,nodev,noatime,resuid=100000 0 0',
    'devpts /terminals devpts newinstance,ptmxmode=0666,mode=620,max=64 0 0',
    'overlay /code overlay ro,nosuid,nodev,lowerdir=code\\134:1\\134,2:/run/empty 0 0',
    'tmpfs /tmp tmpfs nosuid,nodev,mode=1777,size=4096,nr_inodes=7,uid=9,gid=9 0 0',
    'tmpfs /devices tmpfs nosuid,noexec,mode=755,size=64k,nr_inodes=64 0 0',
    '',
  ])
})

const STEPS = { joinFiles: [], mounting: undefined, hostId: undefined, rlimits: [] }

test('without mounts and root the script changes neither namespace, user nor OOM score', () => {
  expect(createLaunchArgv(STEPS, 42, ['bwrap', '--version'])).toEqual([
    'setpriv',
    '--pdeathsig',
    'KILL',
    '--',
    'sh',
    '-c',
    'set -e\n[ "$PPID" = "$0" ]\nexec prlimit "$@"',
    '42',
    'bwrap',
    '--version',
  ])
})

test('mounts are in their own namespace, without root also in a user namespace', () => {
  const mounting = { mounts: [], table: '/table', folder: '/cache' }
  const prefixOf = (hostId: number | undefined): string =>
    createLaunchArgv({ ...STEPS, mounting, hostId }, 42, []).join(' ')
  expect(prefixOf(7)).toStartWith(
    'setpriv --pdeathsig KILL -- unshare --mount --propagation private -- sh -c ',
  )
  expect(prefixOf(undefined)).toStartWith(
    'setpriv --pdeathsig KILL -- unshare --user --map-root-user --mount --propagation private -- sh -c ',
  )
})

test('the launch script exits if its parent is not the supervisor (threat T40)', async () => {
  const child = Bun.spawn(createLaunchArgv(STEPS, 1, ['echo', 'started']), { stdout: 'pipe' })
  expect(await new Response(child.stdout).text()).toBe('')
  expect(await child.exited).toBe(1)
  const own = Bun.spawn(createLaunchArgv(STEPS, process.pid, ['echo', 'started']), { stdout: 'pipe' })
  expect(await new Response(own.stdout).text()).toBe('started\n')
})
