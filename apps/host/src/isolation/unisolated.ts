import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { shape } from '@sandwire/protocol'
import { identifyProcess, isRunning, type ProcessIdentity } from '../data/process-identity.ts'
import { pollUntil } from '../poll.ts'
import {
  INSIDE,
  type Isolation,
  type IsolationSettings,
  type LaunchedSandbox,
  type LaunchPlan,
  type OutsidePaths,
} from './isolation.ts'
import { Launched } from './launched-sandbox.ts'
import { descendantsOf, findProcess, listProcesses, signalProcess } from './process-table.ts'
import { removeTree } from './remove-tree.ts'
import {
  ensureFolder,
  ensureOwnedFolderMode,
  foldersOf,
  outsidePaths,
  type SandboxFolders,
} from './sandbox-folders.ts'
import { DAEMON_MEMORY, findTool } from './system-tools.ts'

/** Longer than sandboxd takes to end processes that do not want to. */
const SWEEP_MS = 6_000

const identityShape = shape.record({ pid: shape.whole(1, 2 ** 31), startTicks: shape.offset })

const NO_IMAGES = { hasImages: false }

/** Ties sandboxd to its supervisor's life. */
const LAUNCHER = 'setpriv'

/** Whether this machine has what starts sandboxes without isolation. */
export function canLaunchUnisolated(): boolean {
  return findTool(LAUNCHER) !== null
}

/** Says an argument in paths of this machine, where a sandbox would have its own. */
export function toOutside(argument: string, outside: OutsidePaths): string {
  const run = path.dirname(outside.daemonSocket)
  const places: readonly (readonly [string, string])[] = [
    [INSIDE.run, run],
    [path.dirname(INSIDE.proxySocket), path.dirname(outside.proxySocket)],
    [INSIDE.workspace, outside.workspace],
    [INSIDE.home, outside.home],
  ]
  for (const [inside, here] of places) {
    const at = argument.indexOf(inside)
    const after = argument[at + inside.length]
    if ((at === 0 || argument[at - 1] === ':') && (after === undefined || after === '/'))
      return argument.slice(0, at) + here + argument.slice(at + inside.length)
  }
  return argument
}

/** Says which process is sandboxd, for whoever comes after a supervisor that died. */
function daemonFile(folders: SandboxFolders): string {
  return path.join(folders.run, 'daemon.json')
}

function readDaemon(folders: SandboxFolders): ProcessIdentity | undefined {
  try {
    return identityShape.decode(JSON.parse(readFileSync(daemonFile(folders), 'utf8')))
  } catch {
    // It was never launched, or was swept before.
    return undefined
  }
}

/** Runs sandboxd as it is, beside everything else of the user. */
class Unisolated implements Isolation {
  readonly kind = 'none'
  readonly weaknesses = [
    'no isolation: processes in sandboxes can do whatever the user who started this can',
    'no limits on memory, processor, processes and disk',
  ]
  readonly #settings: IsolationSettings

  constructor(settings: IsolationSettings) {
    this.#settings = settings
  }

  async prepare(plan: Pick<LaunchPlan, 'id' | 'limits'>): Promise<OutsidePaths> {
    const folders = foldersOf(this.#settings, plan.id)
    ensureOwnedFolderMode(this.#settings.runBase, 0o700)
    await removeTree(folders.io)
    for (const folder of [folders.run, folders.io, folders.egress]) ensureFolder(folder, 0o700)
    for (const name of ['workspace', 'home']) ensureFolder(path.join(folders.files, name), 0o700)
    return this.#outside(folders)
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

  /** A sandboxd whose supervisor died ends what it started by itself; only one that cannot is killed. */
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

  /** sandboxd is stopRequested to end when its parent dies, so that it can end what it started. */
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
  // Remembered, because what outlives sandboxd is no longer its descendant.
  const known = new Set<number>()
  const look = (): number[] => {
    for (const { pid } of descendantsOf(child.pid, listProcesses())) known.add(pid)
    return [...known].filter((pid) => findProcess(pid)?.isZombie === false)
  }
  return {
    child,
    findDaemon: () => {
      look()
      return child.exitCode === null ? child.pid : undefined
    },
    killAll: () => {
      for (const pid of look()) signalProcess(pid, 'SIGKILL')
      child.kill('SIGKILL')
    },
    isGone: () => look().length === 0,
    // Its socket may be anything by now, and goes with its folder at the next start.
    cleanUp: () => undefined,
    ranOutOfMemory: () => false,
  }
}

/** Sandboxes that are not isolated, for machines where nothing else can be had. Loopback only. */
export function createUnisolated(settings: IsolationSettings): Isolation {
  return new Unisolated(settings)
}
