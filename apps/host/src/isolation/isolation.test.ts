import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { decide } from './choose-isolation.ts'
import { inodesFor } from './disk-image.ts'
import { defaultRunBase } from './isolation.ts'
import { describeEnd } from './launched-sandbox.ts'
import { parseInfo } from './process-table.ts'
import { countsPerNamespace, createRlimits } from './resource-limits.ts'
import { createEtcFiles } from './system-files.ts'
import { toOutside } from './unisolated.ts'
import { DiskTally, tallyFolders } from './watch-disk.ts'
import { decideMemoryAction, LookSchedule, parseRollup, pauseAfter } from './watchdog.ts'

const folder = mkdtempSync('/tmp/run-')
afterAll(() => rmSync(folder, { recursive: true }))

test('puts sockets into the runtime folder of the user unless it is missing or its path is too long', () => {
  const long = path.join(folder, 'x'.repeat(40))
  mkdirSync(long)
  expect(defaultRunBase({ XDG_RUNTIME_DIR: folder }, 7)).toBe(`${folder}/sandwire`)
  for (const XDG_RUNTIME_DIR of [long, path.join(folder, 'absent'), 'relative', undefined])
    expect(defaultRunBase({ XDG_RUNTIME_DIR }, 7)).toBe('/tmp/sandwire-7')
  expect(defaultRunBase({ XDG_RUNTIME_DIR: folder }, 0)).toBe('/run/sandwire')
})

test('names the end of a sandbox by exit code or signal', () => {
  expect(describeEnd(0, null)).toBe('exit_0')
  expect(describeEnd(2, null)).toBe('exit_2')
  expect(describeEnd(137, null)).toBe('signal_KILL')
  expect(describeEnd(143, null)).toBe('signal_TERM')
  expect(describeEnd(null, 'SIGSEGV')).toBe('signal_SEGV')
  expect(describeEnd(255, null)).toBe('exit_255')
})

describe('the memory watchdog (threat T32)', () => {
  const NOTHING = { fileBytes: 0, socketBytes: 0 }
  const use = (innerPid: number, bytes: number, sharedBytes = 0, heldBytes = 0, openFiles = 0) => {
    return { pid: innerPid + 1000, innerPid, bytes, sharedBytes, heldBytes, openFiles }
  }

  test('does nothing within the limit', () => {
    expect(decideMemoryAction([use(1, 1), use(2, 50), use(7, 40)], NOTHING, 100)).toEqual({
      kind: 'fine',
      leftBytes: 9,
    })
  })

  test('kills the user’s largest process first, not sandboxd', () => {
    expect(decideMemoryAction([use(1, 1), use(2, 80), use(7, 10), use(8, 20)], NOTHING, 100)).toEqual({
      kind: 'kill',
      pids: [1008],
    })
  })

  test('kills as many processes as it takes to get below the limit', () => {
    const uses = [use(1, 1), use(2, 20), use(7, 300), use(8, 200), use(9, 50), use(10, 10)]
    expect(decideMemoryAction(uses, NOTHING, 100)).toEqual({ kind: 'kill', pids: [1007, 1008] })
    expect(decideMemoryAction(uses, NOTHING, 25)).toEqual({ kind: 'kill', pids: [1007, 1008, 1009, 1010] })
  })

  test('stops the sandbox when only init and sandboxd are left', () => {
    expect(decideMemoryAction([use(1, 1), use(2, 100)], NOTHING, 100)).toEqual({ kind: 'end' })
  })

  test('counts what descriptors may hold, and kills their process', () => {
    const uses = [use(1, 1), use(2, 20), use(7, 10, 0, 70), use(8, 20)]
    expect(decideMemoryAction(uses, NOTHING, 100)).toEqual({ kind: 'kill', pids: [1007] })
  })

  test('counts queues of sockets', () => {
    const uses = [use(1, 1), use(2, 20), use(7, 10), use(8, 20)]
    const common = { fileBytes: 0, socketBytes: 70 }
    expect(decideMemoryAction(uses, common, 100)).toEqual({ kind: 'kill', pids: [1008, 1007] })
  })

  test('kills the process with many open files for queues of sockets, and spares the others', () => {
    const uses = [use(1, 1), use(2, 20), use(7, 10, 0, 0, 2_000), use(8, 20, 0, 0, 10)]
    const common = { fileBytes: 0, socketBytes: 70 }
    expect(decideMemoryAction(uses, common, 100)).toEqual({ kind: 'kill', pids: [1007] })
  })

  test('counts a memory file that is also mapped once', () => {
    const common = { fileBytes: 60, socketBytes: 0 }
    expect(decideMemoryAction([use(2, 20), use(7, 10, 60)], common, 100)).toMatchObject({ kind: 'fine' })
    expect(decideMemoryAction([use(2, 20), use(7, 30, 60)], common, 100)).toEqual({
      kind: 'kill',
      pids: [1007],
    })
  })

  test('parses shared memory of a process', () => {
    const text = 'Rss:  900 kB\nPss:  100 kB\nPss_Anon:  60 kB\nPss_Shmem:  40 kB\n'
    expect(parseRollup(text)).toEqual({ bytes: 61_440, sharedBytes: 40_960 })
    expect(parseRollup(`${text}SwapPss:  10 kB\n`)).toEqual({ bytes: 71_680, sharedBytes: 40_960 })
    expect(parseRollup('Pss:  100 kB\n')).toEqual({ bytes: 102_400, sharedBytes: 0 })
    expect(parseRollup('')).toBeUndefined()
  })
})

describe('the schedule of a watchdog', () => {
  const MIB = 1024 ** 2
  const lookedWith = (leftBytes: number, tookMs = 0): LookSchedule => {
    const schedule = new LookSchedule(500)
    schedule.looked({ startedMs: 1_000 - tookMs, endedMs: 1_000, machineBytes: 900 * MIB, leftBytes })
    return schedule
  }

  test('measures first, and again after the interval, at most for a twentieth of the time', () => {
    expect(new LookSchedule(500).isDue(0, 0)).toBe(true)
    const isDue = (nowMs: number, tookMs?: number): boolean =>
      lookedWith(100 * MIB, tookMs).isDue(nowMs, 900 * MIB)
    expect([isDue(1_499), isDue(1_500), isDue(2_999, 100), isDue(3_000, 100)]).toEqual([
      false,
      true,
      false,
      true,
    ])
  })

  test('measures at once when the machine has grown by what the sandbox had left', () => {
    expect(lookedWith(100 * MIB).isDue(1_020, 999 * MIB)).toBe(false)
    expect(lookedWith(100 * MIB).isDue(1_020, 1_000 * MIB)).toBe(true)
    expect(lookedWith(100 * MIB, 100).isDue(1_020, 1_000 * MIB)).toBe(true)
    // Other programs cause some growth all the time.
    expect(lookedWith(0).isDue(1_020, 901 * MIB)).toBe(false)
  })

  test('sees growth although others freed as much', () => {
    const schedule = lookedWith(100 * MIB)
    expect([500, 599, 600].map((used) => schedule.isDue(1_020, used * MIB))).toEqual([false, false, true])
  })

  test('polls before the sandbox can have used what it had left, not more often than it can measure', () => {
    const pauses = [lookedWith(8192 * MIB), lookedWith(400 * MIB), lookedWith(0), lookedWith(0, 80)]
    expect(pauses.map((schedule) => schedule.pollMs())).toEqual([500, 100, 20, 80])
  })
})

test('uses bubblewrap if it works, and reports a fallback', () => {
  const canLaunch = true
  expect(decide({ requested: undefined, problem: undefined, canLaunch })).toEqual({ kind: 'bubblewrap' })
  expect(decide({ requested: 'none', problem: undefined, canLaunch })).toMatchObject({
    kind: 'none',
    notice: expect.stringContaining('SANDWIRE_ISOLATION=none'),
  })
  expect(decide({ requested: undefined, problem: 'bubblewrap is not installed', canLaunch })).toEqual({
    kind: 'none',
    notice: 'Sandboxes are not isolated from this machine: bubblewrap is not installed',
  })
})

test('reports sandboxes that cannot launch without isolation', () => {
  const found = { requested: 'none', problem: undefined, canLaunch: false }
  expect(decide(found).notice).toEndWith(
    'SANDWIRE_ISOLATION=none, and cannot start: setpriv (util-linux) is not installed',
  )
})

test('without isolation, paths of the sandbox become paths of this machine', () => {
  const outside = {
    daemonSocket: '/r/io/sandboxd.sock',
    proxySocket: '/r/egress/proxy.sock',
    gatewaySocket: '/r/gateway/gate.sock',
    workspace: '/d/w',
    home: '/d/h',
    state: '/d/s',
  }
  expect(toOutside('unix:/run/sandwire/sandboxd.sock', outside)).toBe('unix:/r/io/sandboxd.sock')
  expect(toOutside('/run/sandwire-egress/proxy.sock', outside)).toBe('/r/egress/proxy.sock')
  expect(toOutside('/workspace', outside)).toBe('/d/w')
  expect(toOutside('/var/lib/sandwire', outside)).toBe('/d/s')
  expect(toOutside('/workspaces', outside)).toBe('/workspaces')
  expect(toOutside('--listen', outside)).toBe('--listen')
})

test('limits data only without a cgroup, with room for Bun’s JIT', () => {
  const limits = { memoryBytes: 1024 ** 3, pids: 8, milliCpus: 1000, diskBytes: 1024 ** 2 }
  expect(createRlimits(limits, true)).toEqual(['--core=0:0', '--nofile=4096:4096', '--fsize=1048576:1048576'])
  expect(createRlimits(limits, false)).toContain('--data=4294967296:4294967296')
})

test('limits the number of processes if the kernel counts per namespace', () => {
  expect(countsPerNamespace('5.13.0-generic')).toBe(false)
  expect(countsPerNamespace('5.14.0')).toBe(true)
  expect(countsPerNamespace('6.1.0-18-amd64')).toBe(true)
})

test('pauses in proportion to the duration of a check', () => {
  expect(pauseAfter(1, 2_000)).toBe(2_000)
  expect(pauseAfter(300, 2_000)).toBe(6_000)
  expect(pauseAfter(60_000, 2_000)).toBe(10_000)
})

test('counts a file with several names once, and its names (threat T32)', () => {
  const tally = new DiskTally()
  tally.add('1 8 3\n2 16 1\n3 1')
  tally.add('6 2\n3 16 2\n')
  expect([tally.bytes, tally.inodes, tally.names]).toEqual([40 * 512, 3, 4])
  expect(tally.isOver(1024 ** 2)).toBe(false)
  expect(tally.isOver(20_000)).toBe(true)
  for (let name = 0; name < 2100; name += 1) tally.add('3 16 2100\n')
  expect([tally.inodes, tally.isOver(1024 ** 2)]).toEqual([3, true])
})

test('a look at folders is whole when everything in them was seen (threat T32)', async () => {
  // An empty folder in memory takes no bytes.
  writeFileSync(path.join(folder, 'file'), 'content')
  const look = await tallyFolders([folder], 1024 ** 3)
  expect([look?.isWhole, look?.tally.bytes !== 0]).toEqual([true, true])
  expect(await tallyFolders([path.join(folder, 'moved'), folder], 1024 ** 3)).toMatchObject({
    isWhole: false,
  })
})

test('parses the output of bubblewrap', () => {
  expect(parseInfo('{\n    "child-pid": 4711\n}\n')).toBe(4711)
  expect(parseInfo('')).toBeUndefined()
})

test('scales inodes with the disk size', () => {
  expect(inodesFor(1024 ** 2)).toBe(512)
  expect(inodesFor(2 * 1024 ** 3)).toBe(209_715)
  expect(inodesFor(1024 ** 4)).toBe(2_000_000)
})

test('the /etc of a sandbox has its name and user, and no name server', () => {
  const files = createEtcFiles('dev')
  expect(files['hosts']).toContain('localhost dev')
  expect(files['passwd']).toContain('user:x:1000:1000:user:/home/user:/bin/bash')
  expect(files['resolv.conf']).toBe('')
})

test('falls back to /tmp for a relative runtime folder', () => {
  expect(defaultRunBase({}, 0)).toBe('/run/sandwire')
  expect(defaultRunBase({ XDG_RUNTIME_DIR: '/tmp' }, 1000)).toBe('/tmp/sandwire')
  expect(defaultRunBase({ XDG_RUNTIME_DIR: 'relative' }, 1000)).toBe('/tmp/sandwire-1000')
})
