import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { type ProbeTargets, type ProbeReport, report } from '../probe-protocol.ts'
import { systemCall } from './system-call.ts'

const CONNECT_MS = 1_000

/** True when something accepts a connection. */
function answers(target: { path: string } | { host: string; port: number }): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  try {
    const socket = connect(target)
    socket.setTimeout(CONNECT_MS, () => resolve(false))
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    void promise.finally(() => socket.destroy())
  } catch {
    resolve(false)
  }
  return promise
}

async function probeAbstractSocket(targets: ProbeTargets): Promise<ProbeReport> {
  return (await answers({ path: `\0${targets.abstractSocket}` }))
    ? report('abstract-sockets', 'failed', 'could connect to an abstract socket of this machine')
    : report('abstract-sockets', 'ok', 'cannot connect to an abstract socket of this machine')
}

async function probeNetwork(targets: ProbeTargets): Promise<ProbeReport> {
  const reachable: string[] = []
  for (const address of targets.addresses) {
    const [host = '', port = '0'] = address.split(':')
    if (await answers({ host, port: Number(port) })) reachable.push(address)
  }
  return reachable.length === 0
    ? report('host-network', 'ok', `cannot connect to ${targets.addresses.length} addresses of this machine`)
    : report('host-network', 'failed', `could connect to ${reachable.join(', ')}`)
}

function probeProcesses(targets: ProbeTargets): ProbeReport {
  const marker = Array.from(targets.processMarkerBackwards).toReversed().join('')
  const found = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .some((pid) => textOf(`/proc/${pid}/cmdline`)?.includes(marker) === true)
  return found
    ? report('foreign-processes', 'failed', 'could see a process of this machine')
    : report('foreign-processes', 'ok', 'does not see a process of this machine in /proc')
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    // Refused or gone.
    return undefined
  }
}

function probeEnvironment(targets: ProbeTargets): ProbeReport {
  return process.env[targets.variable] === undefined
    ? report('environment', 'ok', "does not have a variable of this machine's environment")
    : report('environment', 'failed', "could read this machine's environment")
}

/** sandboxd is the parent of this process. */
function probeDaemonMemory(): ProbeReport {
  const open = ['environ', 'mem', 'maps', 'fd/0'].filter((name) => {
    const text =
      name === 'mem' ? tryOpen(`/proc/${process.ppid}/mem`) : textOf(`/proc/${process.ppid}/${name}`)
    return text !== undefined && text !== ''
  })
  return open.length === 0
    ? report('daemon-memory', 'ok', "cannot read sandboxd's memory, environment or descriptors")
    : report('daemon-memory', 'failed', `could read ${open.join(', ')} of sandboxd`)
}

function tryOpen(file: string): string | undefined {
  return Bun.spawnSync(['sh', '-c', 'exec 3<"$1"', 'sh', file], { stderr: 'ignore' }).success
    ? 'open'
    : undefined
}

const SYS_PRLIMIT64 = process.arch === 'arm64' ? 261 : 302
const RLIMIT_NOFILE = 7

/** Sets a limit of sandboxd to the value that it has, so that a success changes nothing. */
function probeDaemonLimits(): ProbeReport {
  const limits = new Uint8Array(16)
  systemCall(SYS_PRLIMIT64, process.ppid, RLIMIT_NOFILE, 0, limits)
  return systemCall(SYS_PRLIMIT64, process.ppid, RLIMIT_NOFILE, limits, 0) < 0
    ? report('daemon-limits', 'ok', 'cannot change the resource limits of sandboxd')
    : report('daemon-limits', 'failed', 'could change the resource limits of sandboxd')
}

/** Opens the memory of init for writing, without writing. */
function probeInitMemory(): ProbeReport {
  try {
    closeSync(openSync('/proc/1/mem', 'r+'))
    return report(
      'init-memory',
      'weak',
      'can change its init, which has the same user; it is ended from outside',
    )
  } catch {
    // Refused, as it should be.
    return report('init-memory', 'ok', 'cannot change its init')
  }
}

async function probeDaemonReach(targets: ProbeTargets): Promise<ProbeReport> {
  const canConnect = await answers({ path: targets.daemonSocket })
  const canSignal = Bun.spawnSync(['sh', '-c', 'kill -0 "$1"', 'sh', String(process.ppid)], {
    stderr: 'ignore',
  })
  if (!canConnect && !canSignal.success)
    return report('daemon-reach', 'ok', "cannot connect to sandboxd's socket or signal it")
  const actions = [...(canConnect ? ['connect to'] : []), ...(canSignal.success ? ['signal'] : [])].join(
    ' and ',
  )
  return report(
    'daemon-reach',
    'weak',
    `can ${actions} sandboxd, which requires a signed token: it runs as the same uid`,
  )
}

/** Looks for other processes, sockets and networks. */
export async function probeNeighbors(targets: ProbeTargets): Promise<ProbeReport[]> {
  return [
    await probeAbstractSocket(targets),
    await probeNetwork(targets),
    probeProcesses(targets),
    probeEnvironment(targets),
    probeDaemonMemory(),
    await probeDaemonReach(targets),
    probeDaemonLimits(),
    probeInitMemory(),
  ]
}
