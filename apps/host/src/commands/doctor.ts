import { mkdtempSync, readFileSync, rmdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { SandwireError, SOFTWARE_VERSION } from '@sandwire/protocol'
import type { Configuration } from '../configuration.ts'
import { findContainerProblems, WEAKNESSES } from '../containers/containers.ts'
import { Docker } from '../containers/docker.ts'
import { explainListenCode, planListen } from '../control/addresses.ts'
import { claimControlUser, findControlUserProblem } from '../control/control-user.ts'
import { findWorkerd } from '../control/workerd.ts'
import { dataFolderAt, openDataFolder } from '../data/data-folder.ts'
import { explainSystemError, findFile } from '../data/folder-problem.ts'
import { readHolder } from '../data/lock.ts'
import { isRunning } from '../data/process-identity.ts'
import { checkIdentity, type IdentityCheck, openIdentityProbes } from '../doctor/check-identity.ts'
import type { ProbeReport } from '../doctor/probe-protocol.ts'
import { runProbes } from '../doctor/run-probes.ts'
import { detectCgroups } from '../isolation/cgroups.ts'
import { chooseIsolation } from '../isolation/choose-isolation.ts'
import { hasLoopDevices } from '../isolation/disk-image.ts'
import { SYSTEM_ENV } from '../isolation/system-tools.ts'
import { describeCause } from '../log.ts'
import { describeMachine } from '../open-sandboxes.ts'
import type { Containers } from '../settings/containers.ts'
import { findMissingCapabilities } from '../supervisor/supervisor-privileges.ts'

const VERSION_TIMEOUT_MS = 10_000

export interface DoctorOptions {
  readonly configuration: Configuration
  readonly env: Readonly<Record<string, string | undefined>>
  readonly notify: (line: string) => void
  readonly print: (text: string) => void
}

/** The version that a program prints; null when it is not installed. */
async function versionOf(argv: readonly string[], env = process.env): Promise<string | null> {
  try {
    const child = Bun.spawn([...argv], {
      stdin: 'ignore',
      stderr: 'ignore',
      env,
      timeout: VERSION_TIMEOUT_MS,
    })
    return /\d[\w.-]*/.exec(await new Response(child.stdout).text())?.[0] ?? null
  } catch {
    // No such program.
    return null
  }
}

async function findPrograms(): Promise<DoctorFacts['programs']> {
  const [node, workerd, bubblewrap] = await Promise.all([
    versionOf(['node', '--version']),
    versionOf([findWorkerd(), '--version']),
    // Looked up as sandboxes do, regardless of PATH.
    versionOf(['bwrap', '--version'], SYSTEM_ENV),
  ])
  return [
    ['sandwire', SOFTWARE_VERSION],
    ['bun', Bun.version],
    ['node', node],
    ['workerd', workerd],
    ['bubblewrap', bubblewrap],
  ]
}

function findData(folder: string): DoctorFacts['data'] {
  const holder = readHolder(dataFolderAt(folder).lock)
  const isHeld = holder !== undefined && isRunning(holder)
  const where = holder?.url === undefined ? '' : ` at ${holder.url}`
  return {
    folder,
    problem: findWriteProblem(folder),
    freeBytes: freeBytesAt(folder),
    holder: isHeld ? `process ${holder.pid}${where}` : null,
  }
}

/** Why a folder, or the parent it would be created in, is not writable. Checked by writing. */
function findWriteProblem(folder: string): string | null {
  const parent = path.dirname(folder)
  if (findFile(folder) === undefined && parent !== folder) return findWriteProblem(parent)
  try {
    rmdirSync(mkdtempSync(path.join(folder, '.doctor-')))
    return null
  } catch (error) {
    return explainSystemError(error) ?? describeCause(error)
  }
}

/** A temporary data folder for the probes. */
function makeScratch(): string {
  try {
    return mkdtempSync(path.join(tmpdir(), 'sandwire-doctor-'))
  } catch (error) {
    throw new SandwireError(
      'forbidden',
      `Cannot create a temporary folder in "${tmpdir()}": ${explainSystemError(error) ?? describeCause(error)}\nhint: set TMPDIR to a folder that this user can write to`,
    )
  }
}

function freeBytesAt(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    // Not created yet.
    return null
  }
}

async function findPort({ port, addresses }: Configuration): Promise<DoctorFacts['port']> {
  const plan = await planListen(addresses, port)
  switch (plan.kind) {
    case 'free':
      return { number: port, problem: null }
    case 'refused':
      return { number: port, problem: explainListenCode(plan.code) }
    case 'no_address':
      return { number: port, problem: `this machine has no address ${addresses.join(' or ')}` }
  }
}

/** Privileges that processes of a server of root have in excess, or lack. */
function findPrivilegeWeaknesses(scratch: string): string[] {
  if (process.getuid?.() !== 0) return []
  const program = findWorkerd()
  const problem = findControlUserProblem(claimControlUser(scratch), program, path.dirname(program))
  const missing = findMissingCapabilities(readFileSync('/proc/self/status', 'utf8'))
  return [
    ...(problem === undefined ? [] : [`control runs as root: ${problem}`]),
    ...(missing.length === 0 ? [] : [`this machine does not give root ${missing.join(', ')}`]),
  ]
}

type Surface = Pick<DoctorFacts, 'isolation' | 'weaknesses' | 'notice' | 'limits'>

async function composeAll(configuration: Configuration, surface: Surface): Promise<string> {
  return formatFindings({
    programs: await findPrograms(),
    data: findData(configuration.dataFolder),
    port: await findPort(configuration),
    identity: await checkIdentity(configuration, openIdentityProbes(configuration.issuerAuthorities)),
    ...surface,
  })
}

/** Reports whether sandboxes can run in containers. */
async function examineContainers(
  containers: Containers,
  { configuration, print }: DoctorOptions,
): Promise<boolean> {
  const problems = await findContainerProblems(containers, new Docker(containers.socket))
  const isolation = `container, image ${containers.image}, engine ${containers.socket}`
  const limits = { processes: 'nothing', disk: 'nothing' }
  const weaknesses = [...problems, ...WEAKNESSES]
  print(await composeAll(configuration, { isolation, weaknesses, notice: null, limits }))
  return problems.length === 0
}

/** Reports what this machine supports, then tries to break out of a temporary sandbox. True when no attempt succeeded. */
export async function doctor(options: DoctorOptions): Promise<boolean> {
  const { configuration, env, notify, print } = options
  if (configuration.sprites !== undefined) {
    const limits = { processes: 'nothing', disk: 'nothing' }
    print(await composeAll(configuration, { isolation: 'sprite', weaknesses: [], notice: null, limits }))
    return true
  }
  if (configuration.containers !== undefined) return examineContainers(configuration.containers, options)
  const scratch = makeScratch()
  try {
    const settings = await describeMachine(openDataFolder(scratch), env, configuration.workspace)
    const { isolation, notice } = await chooseIsolation(settings, {
      SANDWIRE_ISOLATION: configuration.isolation,
    })
    const cgroups = detectCgroups()
    const isIsolated = isolation.kind === 'bubblewrap'
    print(
      await composeAll(configuration, {
        isolation: isolation.kind,
        weaknesses: [...isolation.weaknesses, ...findPrivilegeWeaknesses(scratch)],
        notice: notice ?? null,
        limits: {
          processes: isIsolated
            ? cgroups === 'none'
              ? 'resource limits and a watchdog'
              : `cgroup ${cgroups}`
            : 'nothing',
          disk: isIsolated ? (hasLoopDevices(settings.isRoot) ? 'loop image' : 'a watchdog') : 'nothing',
        },
      }),
    )
    if (!isIsolated) return true
    notify('Trying to break out of a temporary sandbox …')
    // The probes never write to a served folder.
    const { workspace: _served, ...bare } = settings
    const reports = await runProbes(isolation.kind, bare)
    print(formatProbeReports(reports))
    return reports.every(({ verdict }) => verdict !== 'failed')
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Everything `doctor` found on this machine. */
export interface DoctorFacts {
  /** Programs and their versions; null when not installed. */
  readonly programs: readonly (readonly [name: string, version: string | null])[]
  readonly data: {
    readonly folder: string
    /** Why the folder is not writable. */
    readonly problem: string | null
    readonly freeBytes: number | null
    readonly holder: string | null
  }
  readonly port: { readonly number: number; readonly problem: string | null }
  /** Who can sign in, and whether that works. */
  readonly identity: readonly IdentityCheck[]
  readonly isolation: string
  readonly weaknesses: readonly string[]
  /** Why isolation is weaker than bubblewrap's. */
  readonly notice: string | null
  /** What enforces the limits of processes (memory, count, CPU time) and of the disk. */
  readonly limits: { readonly processes: string; readonly disk: string }
}

const GIBIBYTE = 1024 ** 3
const LABEL_WIDTH = 13

function row(label: string, text: string): string {
  return `${label.padEnd(LABEL_WIDTH)}${text}\n`
}

/** Formats the findings that come before the probes. */
export function formatFindings(facts: DoctorFacts): string {
  const { programs, data, port, identity, isolation, weaknesses, notice, limits } = facts
  const free =
    data.freeBytes === null ? 'not created yet' : `${(data.freeBytes / GIBIBYTE).toFixed(1)} GiB free`
  const holder = data.holder === null ? '' : `, used by ${data.holder}`
  return [
    row('Programs', programs.map(([name, version]) => `${name} ${version ?? 'missing'}`).join(', ')),
    row(
      'Data folder',
      data.problem === null
        ? `${data.folder} (${free}${holder})`
        : `${data.folder} cannot be used: ${data.problem}`,
    ),
    row(
      'Port',
      port.problem === null ? `${port.number} is free` : `${port.number} cannot be used: ${port.problem}`,
    ),
    ...identity.map(({ line, isGood }, at) =>
      row(at === 0 ? 'Identity' : '', isGood ? line : `problem: ${line}`),
    ),
    row('Isolation', isolation),
    ...[...(notice === null ? [] : [notice]), ...weaknesses].map((line) => row('', `weak: ${line}`)),
    row('Limits', `processes by ${limits.processes}, disk by ${limits.disk}`),
  ].join('')
}

const MARKS = { ok: 'ok  ', weak: 'weak', failed: 'FAIL' } as const

/** One line for each break-out attempt, and a summary. */
export function formatProbeReports(reports: readonly ProbeReport[]): string {
  const width = Math.max(0, ...reports.map(({ name }) => name.length)) + 2
  const lines = reports.map(
    ({ name, verdict, line }) => `  ${MARKS[verdict]}  ${name.padEnd(width)}${line}\n`,
  )
  const count = (verdict: ProbeReport['verdict']): number =>
    reports.filter((each) => each.verdict === verdict).length
  const sum = `${reports.length} break-out attempts: ${count('ok')} blocked, ${count('weak')} blocked weakly, ${count('failed')} succeeded\n`
  return `${lines.join('')}${sum}`
}
