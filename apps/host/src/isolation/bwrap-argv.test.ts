import { describe, expect, test } from 'bun:test'
import { createBwrapArgv, type BwrapPlan } from './bwrap-argv.ts'
import { planMemoryFolders } from './memory-folders.ts'

const PLAN: BwrapPlan = {
  hostname: 'dev',
  memory: [
    { path: '/dev/shm', bytes: 16_777_216, inodes: 4096 },
    { path: '/tmp', bytes: 33_554_432, inodes: 8192, from: '/run/sandwire/ID/stage/tmp' },
  ],
  users: { kind: 'two', usernsFd: 5 },
  filterFd: 3,
  infoFd: 4,
  usrLinks: ['bin', 'lib'],
  system: [{ from: '/run/sandwire/ID/stage/shared-usr', to: '/usr' }],
  readOnly: [{ from: '/run/sandwire/ID/stage/empty', to: '/proc/fs' }],
  writable: [{ from: '/run/sandwire/ID/stage/disk/workspace', to: '/workspace' }],
  devices: '/run/sandwire/ID/stage/devices',
  terminals: '/run/sandwire/ID/stage/terminals',
  env: { PATH: '/usr/bin', HOME: '/home/user' },
  command: ['/opt/sandwire/executable', 'main.js'],
}

const SHARED = [
  '--unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try',
  '--die-with-parent --new-session --hostname dev',
  '--seccomp 3 --info-fd 4 --clearenv --setenv PATH /usr/bin --setenv HOME /home/user',
  '--perms 0755 --dir /var --perms 0755 --dir /var/lib --perms 0755 --dir /home --perms 0755 --dir /opt --perms 0755 --dir /opt/sandwire',
  '--ro-bind /run/sandwire/ID/stage/shared-usr /usr --symlink usr/bin /bin --symlink usr/lib /lib',
  '--proc /proc',
].join(' ')
const MEMORY = [
  '--perms 1777 --size 16777216 --tmpfs /dev/shm',
  '--bind /run/sandwire/ID/stage/tmp /tmp',
  '--perms 0755 --size 16777216 --tmpfs /run',
  '--symlink ../tmp /var/tmp --symlink ../run /var/run',
].join(' ')
const BINDINGS =
  '--ro-bind /run/sandwire/ID/stage/empty /proc/fs --bind /run/sandwire/ID/stage/disk/workspace /workspace'
const END = '--remount-ro /run --remount-ro / --chdir /workspace --'

describe("bubblewrap's arguments (threat T39)", () => {
  test('with root: two users of a prepared namespace, four capabilities for sandboxd, and the descriptor closed', () => {
    expect(createBwrapArgv(PLAN)).toEqual([
      ...'--userns 5 --uid 0 --gid 0 --cap-drop ALL'.split(' '),
      ...'--cap-add CAP_KILL --cap-add CAP_SETGID --cap-add CAP_SETPCAP --cap-add CAP_SETUID'.split(' '),
      ...`${SHARED} --dev-bind /run/sandwire/ID/stage/devices /dev --dev-bind /run/sandwire/ID/stage/terminals /dev/pts ${MEMORY} ${BINDINGS} ${END}`.split(
        ' ',
      ),
      '/bin/sh',
      '-c',
      'exec "$@" 5<&-',
      'sh',
      '/opt/sandwire/executable',
      'main.js',
    ])
  })

  test('without root: one user, and no namespaces below', () => {
    expect(
      createBwrapArgv({ ...PLAN, users: { kind: 'one' }, devices: undefined, terminals: undefined }),
    ).toEqual([
      ...'--unshare-user --disable-userns --uid 1000 --gid 1000 --cap-drop ALL'.split(' '),
      ...`${SHARED} --dev /dev ${MEMORY} ${BINDINGS} --remount-ro /dev ${END} /opt/sandwire/executable main.js`.split(
        ' ',
      ),
    ])
  })
  test('tmpfs sizes and their inodes have an upper bound (threat T32)', () => {
    expect(planMemoryFolders(1024 ** 4)).toEqual([
      { path: '/dev/shm', bytes: 67_108_864, inodes: 16_384 },
      { path: '/tmp', bytes: 268_435_456, inodes: 65_536 },
    ])
  })
})
