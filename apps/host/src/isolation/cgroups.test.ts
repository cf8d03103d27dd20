import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { canLimitDevices, cgroupOf, detectCgroups, findCgroup } from './cgroups.ts'

/** Uses plain files in place of the kernel's, and checks what is written to them. */
describe('cgroups', () => {
  let root = ''
  const put = (file: string, text = ''): void => {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
    writeFileSync(path.join(root, file), text)
  }
  const get = (file: string): string => readFileSync(path.join(root, file), 'utf8')
  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), 'cgroups-'))
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  test('of version 2 are used when memory, pids and cpu can be delegated', () => {
    put('cgroup.controllers', 'cpuset cpu io memory pids\n')
    expect(detectCgroups(root)).toBe('v2')
    expect(get('cgroup.subtree_control')).toBe('+memory +pids +cpu')
    expect(get('sandwire/cgroup.subtree_control')).toBe('+memory +pids +cpu')
  })

  test('of version 1 are used when all three can be written', () => {
    for (const each of ['memory', 'pids', 'cpu']) put(`${each}/cgroup.procs`)
    expect(detectCgroups(root)).toBe('v1')
    rmSync(path.join(root, 'pids'), { recursive: true })
    expect(detectCgroups(root)).toBe('none')
  })

  test('are not used where they do not exist', () => {
    expect(detectCgroups(root)).toBe('none')
    put('cgroup.controllers', 'hugetlb\n')
    expect(detectCgroups(root)).toBe('none')
  })

  test('of version 2 get the limits of the sandbox (threat T32)', () => {
    put('sandwire/ID/memory.swap.max')
    const group = cgroupOf('v2', 'ID', root)
    group.create({ ...DEFAULT_SANDBOX_LIMITS, milliCpus: 1_500 })
    expect(get('sandwire/ID/memory.max')).toBe('1073741824')
    expect(get('sandwire/ID/memory.swap.max')).toBe('0')
    expect(get('sandwire/ID/pids.max')).toBe('512')
    expect(get('sandwire/ID/cpu.max')).toBe('150000 100000')
    expect(group.joinFiles).toEqual([path.join(root, 'sandwire/ID/cgroup.procs')])
  })

  test('of version 1 get the limits of the sandbox (threat T32)', () => {
    put('memory/sandwire/ID/memory.memsw.limit_in_bytes')
    put('memory/sandwire/ID/memory.kmem.tcp.limit_in_bytes')
    const group = cgroupOf('v1', 'ID', root)
    group.create(DEFAULT_SANDBOX_LIMITS)
    expect(get('memory/sandwire/ID/memory.limit_in_bytes')).toBe('1073741824')
    expect(get('memory/sandwire/ID/memory.memsw.limit_in_bytes')).toBe('1073741824')
    expect(get('memory/sandwire/ID/memory.kmem.tcp.limit_in_bytes')).toBe('268435456')
    expect(get('pids/sandwire/ID/pids.max')).toBe('512')
    expect(get('cpu/sandwire/ID/cpu.cfs_quota_us')).toBe('100000')
    expect(group.joinFiles).toHaveLength(3)
  })

  test('limit the disk of the sandbox where the kernel can (threat T32)', () => {
    put('sandwire/cgroup.subtree_control', 'cpu io memory pids\n')
    expect(canLimitDevices('v2', root)).toBe(true)
    cgroupOf('v2', 'ID', root).create(DEFAULT_SANDBOX_LIMITS)
    cgroupOf('v2', 'ID', root).limitDevice('7:3', 1024 ** 2)
    expect(get('sandwire/ID/io.max')).toBe('7:3 rbps=1048576 wbps=1048576 riops=100 wiops=100')
    expect(canLimitDevices('v1', root)).toBe(false)
    put('blkio/blkio.throttle.read_bps_device')
    const group = cgroupOf('v1', 'ID', root)
    group.create(DEFAULT_SANDBOX_LIMITS)
    group.limitDevice('7:3', 64 * 1024 ** 2)
    expect(group.joinFiles).toContain(path.join(root, 'blkio/sandwire/ID/cgroup.procs'))
    expect(get('blkio/sandwire/ID/blkio.throttle.write_bps_device')).toBe('7:3 67108864')
    expect(get('blkio/sandwire/ID/blkio.throttle.read_iops_device')).toBe('7:3 4096')
  })

  test.each(['v1', 'v2'] as const)('of version %s are in that of their account', (kind) => {
    const [first, second] = [cgroupOf(kind, 'ACCOUNT/FIRST', root), cgroupOf(kind, 'ACCOUNT/SECOND', root)]
    first.create(DEFAULT_SANDBOX_LIMITS)
    second.create(DEFAULT_SANDBOX_LIMITS)
    const base = kind === 'v1' ? 'cpu/sandwire' : 'sandwire'
    expect(first.joinFiles).toContain(path.join(root, base, 'ACCOUNT/FIRST/cgroup.procs'))
    if (kind === 'v2') expect(get('sandwire/ACCOUNT/cgroup.subtree_control')).toBe('+memory +pids +cpu')
    expect(findCgroup(kind, 'SECOND', root)).toBe('ACCOUNT/SECOND')
    expect(findCgroup(kind, 'OTHER', root)).toBe('OTHER')
  })

  test('of accounts are removed with their last one', () => {
    for (const name of ['FIRST', 'SECOND'])
      mkdirSync(path.join(root, 'sandwire/ACCOUNT', name), { recursive: true })
    expect(cgroupOf('v2', 'ACCOUNT/FIRST', root).remove()).toBe(true)
    expect(existsSync(path.join(root, 'sandwire/ACCOUNT/SECOND'))).toBe(true)
    expect(cgroupOf('v2', 'ACCOUNT/SECOND', root).remove()).toBe(true)
    expect(existsSync(path.join(root, 'sandwire/ACCOUNT'))).toBe(false)
    expect(existsSync(path.join(root, 'sandwire'))).toBe(true)
  })

  test('report their processes and OOM kills', () => {
    put('sandwire/ID/cgroup.procs', '12\n34\n')
    put('sandwire/ID/memory.events', 'low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\n')
    put('pids/sandwire/ID/cgroup.procs', '56\n')
    put('memory/sandwire/ID/memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 4\n')
    expect(cgroupOf('v2', 'ID', root).pids()).toEqual([12, 34])
    expect(cgroupOf('v2', 'ID', root).oomKills()).toBe(2)
    expect(cgroupOf('v1', 'ID', root).pids()).toEqual([56])
    expect(cgroupOf('v1', 'ID', root).oomKills()).toBe(4)
  })

  test('of version 2 are killed with one write', () => {
    put('sandwire/ID/cgroup.kill')
    cgroupOf('v2', 'ID', root).kill()
    expect(get('sandwire/ID/cgroup.kill')).toBe('1')
  })

  test('can be removed when missing, not while in use', () => {
    expect(cgroupOf('v1', 'ID', root).remove()).toBe(true)
    put('sandwire/ID/child/cgroup.procs')
    expect(cgroupOf('v2', 'ID', root).remove()).toBe(false)
  })
})
