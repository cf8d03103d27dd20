import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { schema } from '@sandwire/protocol'
import { identifyProcess, isRunning, type ProcessIdentity } from '../data/process-identity.ts'
import type { EgressLaunch } from '../egress/egress-process.ts'
import { pollUntil } from '../poll.ts'
import { bundleEgress } from './daemon-bundle.ts'
import {
  INSIDE,
  type Isolation,
  type IsolationSettings,
  type LaunchedSandbox,
  type LaunchPlan,
  type OutsidePaths,
  type PreparePlan,
} from './isolation.ts'
import { Launched } from './launched-sandbox.ts'
import { descendantsOf, findProcess, listProcesses, signalProcess } from './process-table.ts'
import { removeTree } from './remove-tree.ts'
import {
  cacheFolderOf,
  ensureFolder,
  ensureOwnedFolderMode,
  foldersOf,
  outsidePaths,
  requireFiles,
  type SandboxFolders,
} from './sandbox-folders.ts'
import { DAEMON_MEMORY, findTool } from './system-tools.ts'

/** Longer than sandboxd takes to kill its processes. */
const SWEEP_MS = 6_000

const identitySchema = schema.record({
  pid: schema.integer(1, 2 ** 31),
  startTicks: schema.nonNegativeInteger,
})

const NO_IMAGES = { hasImages: false }

/** Sets the parent-death signal of sandboxd. */
const LAUNCHER = 'setpriv'

/** True when sandboxes can start without isolation. */
export function canLaunchUnisolated(): boolean {
  return findTool(LAUNCHER) !== null
}

/** Replaces a sandbox path in an argument by the path on this machine. */
export function toOutside(argument: string, outside: OutsidePaths): string {
  const run = path.dirname(outside.daemonSocket)
  const mappings: readonly (readonly [string, string])[] = [
    [INSIDE.run, run],
    [path.dirname(INSIDE.proxySocket), path.dirname(outside.proxySocket)],
    [path.dirname(INSIDE.gatewaySocket), path.dirname(outside.gatewaySocket)],
    [INSIDE.workspace, outside.workspace],
    [INSIDE.home, outside.home],
    [INSIDE.state, outside.state],
  ]
  for (const [inside, here] of mappings) {
    const at = argument.indexOf(inside)
    const after = argument[at + inside.length]
    if ((at === 0 || argument[at - 1] === ':') && (after === undefined || after === '/'))
      return argument.slice(0, at) + here + argument.slice(at + inside.length)
  }
  return argument
}

/** File that identifies sandboxd's process, for cleanup after a supervisor that died. */
function daemonFile(folders: SandboxFolders): string {
  return path.join(folders.run, 'daemon.json')
}

function readDaemon(folders: SandboxFolders): ProcessIdentity | undefined {
  try {
    return identitySchema.decode(JSON.parse(readFileSync(daemonFile(folders), 'utf8')))
  } catch {
    // Never launched, or cleaned up before.
    return undefined
  }
}

/** Runs sandboxd as a plain process of this user. */
class Unisolated implements Isolation {
  readonly kind = 'none'
  readonly weaknesses = [
    'no isolation: processes in sandboxes have all permissions of the user who started Sandwire',
    'no limits on memory, CPU, processes and disk',
  ]
  readonly #settings: IsolationSettings

  constructor(settings: IsolationSettings) {
    this.#settings = settings
  }

  filesOf(id: string): string {
    return foldersOf(this.#settings, id).files
  }

  async prepare(plan: PreparePlan): Promise<OutsidePaths> {
    const folders = foldersOf(this.#settings, plan.id)
    requireFiles(plan, folders.files)
    ensureOwnedFolderMode(this.#settings.runBase, 0o700)
    await removeTree(folders.io)
    for (const folder of [folders.run, folders.io, folders.egress, folders.gateway])
      ensureFolder(folder, 0o700)
    for (const name of ['workspace', 'home', 'state']) ensureFolder(path.join(folders.files, name), 0o700)
    return this.#outside(folders)
  }

  async launchEgress(id: string): Promise<EgressLaunch> {
    const { program, egressCode } = this.#settings
    const code = egressCode ?? (await bundleEgress(cacheFolderOf(this.#settings)))
    const folders = foldersOf(this.#settings, id)
    const argv = [findTool(LAUNCHER) ?? LAUNCHER, '--pdeathsig', 'KILL', '--', program.executable]
    const child = Bun.spawn([...argv, path.join(code, 'main.js')], {
      cwd: folders.egress,
      env: { PATH: process.env['PATH'] },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    return { child, socketPath: this.#outside(folders).proxySocket }
  }

  launch(plan: LaunchPlan): Promise<LaunchedSandbox> {
    const folders = foldersOf(this.#settings, plan.id)
    const outside = this.#outside(folders)
    writeFileSync(path.join(folders.io, path.basename(INSIDE.publicKey)), plan.publicKey, { mode: 0o600 })
    const child = Bun.spawn(this.#argv(plan, outside), {
      cwd: outside.workspace,
      env: {
        PATH: process.env['PATH'],
        LANG: process.env['LANG'] ?? 'C.UTF-8',
        HOME: outside.home,
        ...DAEMON_MEMORY,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    writeFileSync(daemonFile(folders), JSON.stringify(identifyProcess(child.pid) ?? null), { mode: 0o600 })
    return Promise.resolve(new Launched(partsOf(child)))
  }

  /** A sandboxd whose supervisor died ends its processes itself; it is killed only if it hangs. */
  async sweep(id: string): Promise<void> {
    const folders = foldersOf(this.#settings, id)
    const daemon = readDaemon(folders)
    const isGone = (): boolean => daemon === undefined || !isRunning(daemon)
    if (daemon !== undefined && !(await pollUntil(isGone, SWEEP_MS))) {
      signalProcess(daemon.pid, 'SIGKILL')
      await pollUntil(isGone, SWEEP_MS)
    }
    await removeTree(folders.run)
  }

  async remove(id: string): Promise<void> {
    await this.sweep(id)
    await removeTree(foldersOf(this.#settings, id).files)
  }

  #outside(folders: SandboxFolders): OutsidePaths {
    return outsidePaths(folders, { ...NO_IMAGES, workspace: this.#settings.workspace })
  }

  /** sandboxd gets SIGTERM when its parent dies, so that it can end its processes. */
  #argv(plan: LaunchPlan, outside: OutsidePaths): string[] {
    const { executable, code } = this.#settings.program
    return [
      findTool(LAUNCHER) ?? LAUNCHER,
      '--pdeathsig',
      'TERM',
      '--',
      executable,
      ...(code === undefined ? [] : [path.join(code.folder, code.entry)]),
      ...plan.daemonArgs.map((argument) => toOutside(argument, outside)),
    ]
  }
}

function partsOf(child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>): ConstructorParameters<typeof Launched>[0] {
  // Remembered, because processes that outlive sandboxd are no longer its descendants.
  const known = new Set<number>()
  const listRemaining = (): number[] => {
    for (const { pid } of descendantsOf(child.pid, listProcesses())) known.add(pid)
    return [...known].filter((pid) => findProcess(pid)?.isZombie === false)
  }
  return {
    child,
    findDaemon: () => {
      listRemaining()
      return child.exitCode === null ? child.pid : undefined
    },
    killAll: () => {
      for (const pid of listRemaining()) signalProcess(pid, 'SIGKILL')
      child.kill('SIGKILL')
    },
    isGone: () => listRemaining().length === 0,
    // The socket is not trusted any more; its folder is recreated at the next start.
    cleanUp: () => undefined,
    ranOutOfMemory: () => false,
  }
}

/** Sandboxes without isolation, where nothing else works. Loopback only. */
export function createUnisolated(settings: IsolationSettings): Isolation {
  return new Unisolated(settings)
}
