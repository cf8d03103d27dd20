import { expect, test } from 'bun:test'
import { createLaunchArgv, createLaunchScript } from './launch-script.ts'

test('the launch script joins its cgroup first and runs bubblewrap with the given uid', () => {
  const script = createLaunchScript({
    joinFiles: ['/sys/fs/cgroup/pids/sandwire/ID/cgroup.procs'],
    root: {
      hostId: 1_879_048_192,
      mounts: [
        { kind: 'bind', from: "/srv/it's/bun", to: '/run/sandwire/ID/stage/executable' },
        { kind: 'image', from: '/data/ID.ext4', to: '/run/sandwire/ID/stage/disk' },
        { kind: 'terminals', to: '/run/sandwire/ID/stage/terminals', max: 64 },
      ],
    },
    rlimits: ['--core=0:0'],
    oomScore: 200,
  })
  expect(script.split('\n')).toEqual([
    'set -e',
    '[ "$PPID" = "$0" ]',
    'echo $$ > /sys/fs/cgroup/pids/sandwire/ID/cgroup.procs',
    'echo 200 2>/dev/null > /proc/self/oom_score_adj || :',
    "mount --bind '/srv/it'\\''s/bun' /run/sandwire/ID/stage/executable",
    'mount -t ext4 -o loop,discard,nosuid,nodev,noatime /data/ID.ext4 /run/sandwire/ID/stage/disk',
    'chmod 755 /run/sandwire/ID/stage/disk/workspace /run/sandwire/ID/stage/disk/home',
    'mount -t devpts -o newinstance,ptmxmode=0666,mode=620,max=64 devpts /run/sandwire/ID/stage/terminals',
    'exec prlimit --core=0:0 setpriv --pdeathsig KILL --reuid 1879048192 --regid 1879048192 --clear-groups -- "$@"',
  ])
})

test('without root the script mounts nothing, and changes neither user nor OOM score', () => {
  const steps = { joinFiles: [], root: undefined, rlimits: [] }
  expect(createLaunchArgv(steps, 42, ['bwrap', '--version'])).toEqual([
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

test('with root the mounts are in their own namespace', () => {
  const steps = { joinFiles: [], root: { hostId: 7, mounts: [] }, rlimits: [] }
  expect(createLaunchArgv(steps, 42, []).slice(4, 9)).toEqual([
    'unshare',
    '--mount',
    '--propagation',
    'private',
    '--',
  ])
})

test('the launch script exits if its parent is not the supervisor (threat T40)', async () => {
  const steps = { joinFiles: [], root: undefined, rlimits: [] }
  const child = Bun.spawn(createLaunchArgv(steps, 1, ['echo', 'started']), { stdout: 'pipe' })
  expect(await new Response(child.stdout).text()).toBe('')
  expect(await child.exited).toBe(1)
  const own = Bun.spawn(createLaunchArgv(steps, process.pid, ['echo', 'started']), { stdout: 'pipe' })
  expect(await new Response(own.stdout).text()).toBe('started\n')
})
