import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chownSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, readDescendants } from '@sandwire/testing'
import { detectCgroups } from '../../../apps/host/src/isolation/cgroups.ts'
import { findBubblewrapProblem } from '../../../apps/host/src/isolation/choose-isolation.ts'
import { startHost, type RunningHost } from '../support/control.ts'

const isRoot = process.getuid?.() === 0
const problem = isRoot ? await findBubblewrapProblem() : 'not started as root'

/** Privileges of a process. */
interface Privileges {
  readonly uid: number
  readonly gid: number
  readonly groups: string
  readonly effective: bigint
  readonly bounding: bigint
  readonly hasNoNewPrivileges: boolean
}

function privilegesOf(pid: number): Privileges {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const valueOf = (label: string): string => new RegExp(`^${label}:[ \\t]*(.*)$`, 'm').exec(status)?.[1] ?? ''
  return {
    uid: Number.parseInt(valueOf('Uid'), 10),
    gid: Number.parseInt(valueOf('Gid'), 10),
    groups: valueOf('Groups').trim(),
    effective: BigInt(`0x${valueOf('CapEff')}`),
    bounding: BigInt(`0x${valueOf('CapBnd')}`),
    hasNoNewPrivileges: valueOf('NoNewPrivs') === '1',
  }
}

/** Processes below the host with this argument, whose first argument ends with `first`. */
function findChildren(host: RunningHost, argument: string, first = ''): number[] {
  return readDescendants(host.pid)
    .map(({ pid }) => pid)
    .filter((pid) => {
      const argv = commandOf(pid).split('\0')
      return argv.some((each) => each.endsWith(argument)) && argv[0]?.endsWith(first) === true
    })
}

function findChild(host: RunningHost, argument: string, first = ''): number {
  const [pid] = findChildren(host, argument, first)
  if (pid === undefined) throw new Error(`No process has the argument "${argument}"`)
  return pid
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    // Ended.
    return ''
  }
}

const SUPERVISOR_CAPABILITIES =
  'chown dac_override fowner kill setgid setuid setpcap sys_admin sys_ptrace mknod sys_resource'.split(' ')

/** Names of capabilities by number. */
async function readCapabilityNames(): Promise<string[]> {
  const listed = await new Response(Bun.spawn(['setpriv', '--list-caps']).stdout).text()
  return listed.trim().split('\n')
}

describe.skipIf(problem !== undefined)('processes of a server that root started', () => {
  let data = ''
  let host: RunningHost
  beforeAll(async () => {
    data = mkdtempSync('/tmp/up-privileges-')
    // Started in a folder that other users cannot enter, such as /root.
    host = await startHost({ data, prefix: ['env', '-C', data] })
    await create('one')
  })
  afterAll(async () => {
    await host.stop()
    rmSync(data, { recursive: true, force: true })
  })

  async function create(name: string, network?: object): Promise<void> {
    const response = await host.fetch('/api/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, start: true, ...(network !== undefined && { network }) }),
    })
    expect(response.status).toBeLessThan(300)
  }

  test('workerd runs as its own user, without groups and capabilities', () => {
    const { uid, gid, ...rest } = privilegesOf(findChild(host, '/workerd'))
    expect(uid).toBeGreaterThan(65_535)
    expect(gid).toBe(uid)
    expect(rest).toEqual({ groups: '', effective: 0n, bounding: 0n, hasNoNewPrivileges: true })
  })

  test('supervisors keep the capabilities that isolation needs, and no way to gain others', async () => {
    const { uid, effective, bounding, hasNoNewPrivileges } = privilegesOf(
      findChild(host, '/supervisor/main.ts'),
    )
    expect([uid, hasNoNewPrivileges]).toEqual([0, true])
    expect(effective).toBe(bounding)
    const names = (await readCapabilityNames()).filter((_, bit) => (effective & (1n << BigInt(bit))) !== 0n)
    expect(names.filter((name) => !SUPERVISOR_CAPABILITIES.includes(name))).toEqual([])
  })

  test('the egress proxy of a sandbox has its own user, and no files of this machine', async () => {
    await create('networked', { policy: 'allowlist', allow: ['example.com'] })
    const pid = findChild(host, '/egress/main.js', 'executable')
    const { uid, effective, bounding, hasNoNewPrivileges } = privilegesOf(pid)
    expect({ effective, bounding, hasNoNewPrivileges }).toEqual({
      effective: 0n,
      bounding: 0n,
      hasNoNewPrivileges: true,
    })
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^Seccomp:\t2$/m)
    const others = ['/workerd', '/supervisor/main.ts', '/code/main.js'].map((each) => findChild(host, each))
    expect(others.map((each) => privilegesOf(each).uid)).not.toContain(uid)
    expect(readdirSync(`/proc/${pid}/root/`).toSorted()).toEqual(
      expect.arrayContaining(['dev', 'etc', 'opt', 'proc', 'run', 'usr']),
    )
    expect(existsSync(`/proc/${pid}/root${data}`)).toBe(false)
    if (detectCgroups() !== 'none') expect(readFileSync(`/proc/${pid}/cgroup`, 'utf8')).toContain('-egress')
  })

  test.skipIf(detectCgroups() === 'none')(
    'the sandboxes of an account and their egress proxies share its processor time',
    async () => {
      await create('another')
      const pids = [
        ...findChildren(host, '/code/main.js', 'executable'),
        ...findChildren(host, '/egress/main.js', 'executable'),
      ]
      expect(pids.length).toBeGreaterThanOrEqual(3)
      const groups = pids.map((pid) => {
        const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n')
        const line =
          lines.find((each) => /:(cpu|cpu,.*|.*,cpu):/.test(each)) ??
          lines.find((each) => each.startsWith('0::'))
        return line?.split(':')[2]?.split('/') ?? []
      })
      expect(new Set(groups.map((names) => names.at(-2)?.replace(/^[0-9a-f]+-/, '')))).toEqual(
        new Set(['local']),
      )
      expect(new Set(groups.map((names) => names.at(-1))).size).toBe(pids.length)
    },
  )

  test('an egress proxy that dies is replaced', async () => {
    const pid = findChild(host, '/egress/main.js', 'executable')
    process.kill(pid, 'SIGKILL')
    await eventually(() => findChildren(host, '/egress/main.js', 'executable').some((each) => each !== pid), {
      what: 'another egress proxy',
    })
  })

  test('workerd can read only its own files of the data folder', () => {
    const { uid } = privilegesOf(findChild(host, '/workerd'))
    const open = readdirSync(data).filter((name) => statSync(join(data, name)).uid === uid)
    expect(open).toEqual(['control'])
    const files = [data, join(data, 'keys'), join(data, 'local-token'), join(data, 'sandboxes')]
    const asWorkerd = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--']
    for (const file of files)
      expect([file, Bun.spawnSync([...asWorkerd, 'ls', file], { stderr: 'ignore' }).success]).toEqual([
        file,
        false,
      ])
  })

  test('a data folder of an earlier version, with databases of root, keeps working', async () => {
    await host.stop()
    for (const name of readdirSync(join(data, 'control'), { recursive: true, encoding: 'utf8' }))
      chownSync(join(data, 'control', name), 0, 0)
    chownSync(join(data, 'control'), 0, 0)
    host = await startHost({ data })
    const listed = await (await host.fetch('/api/sandboxes')).text()
    expect(listed).toContain('"networked"')
    await create('two')
  })
})
