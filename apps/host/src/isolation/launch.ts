import { closeSync, constants, lchownSync, openSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pollUntil } from '../poll.ts'
import { type Binding, createBwrapArgv } from './bwrap-argv.ts'
import { type CgroupKind, cgroupOf } from './cgroups.ts'
import { BUNDLE_PROGRAMS } from './daemon-bundle.ts'
import { limitGrowth } from '../disk/image-growth.ts'
import { watchFullDisk } from '../disk/watch-full-disk.ts'
import { deviceNumberOf, deviceOf, enableDirectIo, isAttached } from './disk-image.ts'
import {
  cgroupNameOf,
  INSIDE,
  type IsolationSettings,
  type LaunchedSandbox,
  type LaunchPlan,
} from './isolation.ts'
import { createLaunchArgv } from './launch-script.ts'
import { Launched } from './launched-sandbox.ts'
import { findDaemon, findInit, signalProcess } from './process-table.ts'
import { createRlimits, findOomScore, limitProcesses } from './resource-limits.ts'
import { INSIDE_DAEMON, shareAgents, shareDaemon } from './programs.ts'
import { cacheFolderOf, type SandboxFolders, type SandboxIds } from './sandbox-folders.ts'
import { SandboxInit } from './sandbox-init.ts'
import { createFilterBytes } from './seccomp/filter.ts'
import { prepareStage, type Stage } from './stage.ts'
import { ensureHostEtc, procReadOnlyBindings, usrLinks } from './system-files.ts'
import { DAEMON_MEMORY, SYSTEM_ENV } from './system-tools.ts'
import { openUserNamespace } from './user-namespace.ts'
import { watchDisk } from './watch-disk.ts'
import { startWatches, watchMemory, watchNetlink } from './watchdog.ts'

/** Features of this machine. */
export interface Machine {
  readonly cgroups: CgroupKind
  /** True when each sandbox has a disk image. */
  readonly hasImages: boolean
  /** True when shared folders are mounted as an overlay for each sandbox. */
  readonly hasOverlays: boolean
}

/** Inputs of a launch. */
export interface LaunchRequest {
  readonly plan: LaunchPlan
  readonly folders: SandboxFolders
  /** Present with root. */
  readonly ids: SandboxIds | undefined
  readonly settings: IsolationSettings
  readonly machine: Machine
}

/** Descriptors passed to bubblewrap. */
const FILTER_FD = 3
const INFO_FD = 4
const USERNS_FD = 5
/** Time for an earlier run of the sandbox to release its image. */
const RELEASE_MS = 5_000
/** Delay of optimizations and of the disk's bandwidth limit, so that they do not slow down the start. */
const SETTLED_MS = 1_000

/** Environment of sandboxd, which processes inherit in part. */
const DAEMON_ENV = {
  // Programs that ship with sandboxd come last: those of the machine are preferred.
  PATH: `/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:${INSIDE_DAEMON.code}/${BUNDLE_PROGRAMS}`,
  HOME: INSIDE.home,
  LANG: 'C.UTF-8',
  ...DAEMON_MEMORY,
}

/** Changes the owner of sandboxd's files (key, environment) before anything of the sandbox runs. */
function handOver(folder: string, ids: SandboxIds): void {
  for (const name of readdirSync(folder)) lchownSync(path.join(folder, name), ids.daemon, ids.daemon)
}

function commandOf({ plan, ids, settings, machine }: LaunchRequest): string[] {
  const { code } = settings.program
  return [
    ...(machine.cgroups === 'none' ? limitProcesses(plan.limits.pids) : []),
    INSIDE_DAEMON.executable,
    ...(code === undefined ? [] : [`${INSIDE_DAEMON.code}/${code.entry}`]),
    ...plan.daemonArgs,
    ...(ids === undefined ? [] : ['--run-as', '1000:1000']),
  ]
}

function createBindings(
  { plan, folders, settings, ids }: LaunchRequest,
  { files, masks }: Stage,
): { readOnly: Binding[]; writable: Binding[] } {
  return {
    readOnly: [
      ...(ids === undefined && process.getuid?.() === 0 ? procReadOnlyBindings() : []),
      ...masks,
      { from: folders.gateway, to: path.dirname(INSIDE.gatewaySocket) },
      ...(plan.hasEgress ? [{ from: folders.egress, to: path.dirname(INSIDE.proxySocket) }] : []),
    ],
    writable: [
      { from: folders.io, to: INSIDE.run },
      { from: settings.workspace ?? path.join(files, 'workspace'), to: INSIDE.workspace },
      { from: path.join(files, 'home'), to: INSIDE.home },
      { from: path.join(files, 'state'), to: INSIDE.state },
    ],
  }
}

/** Waits until an earlier run has released the image: mounting it twice would corrupt it. */
async function awaitRelease(image: string): Promise<void> {
  if (!(await pollUntil(() => !isAttached(image), RELEASE_MS)))
    throw new Error('Cannot start the sandbox: its disk is still in use')
}

/** Starts a prepared sandbox. */
export async function launchInBubblewrap(request: LaunchRequest): Promise<LaunchedSandbox> {
  const { plan, folders, ids, settings, machine } = request
  const cgroup = cgroupOf(machine.cgroups, cgroupNameOf(settings, plan.id))
  for (const pid of cgroup.pids()) signalProcess(pid, 'SIGKILL')
  SandboxInit.read(folders).kill()
  if (machine.hasImages) await awaitRelease(folders.image)
  cgroup.create(plan.limits)
  const architecture = process.arch === 'arm64' ? 'arm64' : 'x64'
  writeFileSync(folders.filter, createFilterBytes(architecture, machine.cgroups === 'none'))
  const keyFile = path.join(folders.io, path.basename(INSIDE.publicKey))
  writeFileSync(keyFile, plan.publicKey, { flag: 'wx', mode: 0o600 })
  if (ids !== undefined) handOver(folders.io, ids)
  const oomKillsBefore = cgroup.oomKills()
  const child = await spawn(request, cgroup.joinFiles).catch((error: unknown) => {
    cgroup.remove()
    throw error
  })
  const init = await SandboxInit.record(folders, () => child.exitCode !== null || child.signalCode !== null)
  const launched = new Launched({
    child,
    ...(ids !== undefined && { daemonUid: ids.daemon }),
    findDaemon: () => findDaemon(folders.info),
    killAll: () => {
      cgroup.kill()
      for (const pid of cgroup.pids()) signalProcess(pid, 'SIGKILL')
      init.kill()
      child.kill('SIGKILL')
    },
    isGone: () =>
      cgroup.pids().length === 0 && init.isGone && !(machine.hasImages && isAttached(folders.image)),
    // The socket is not trusted any more; its folder is recreated at the next start.
    cleanUp: () => void cgroup.remove(),
    ranOutOfMemory: () => cgroup.oomKills() > oomKillsBefore,
    ...(machine.hasImages && {
      limitGrowth: (bytes: number) => {
        const pid = findDaemon(folders.info)
        if (pid !== undefined) limitGrowth({ device: deviceOf(folders.image), pid }, bytes)
      },
    }),
  })
  startWatchdogs(request, launched)
  if (machine.hasImages) settleDisk(request, launched)
  return launched
}

function settleDisk({ plan, folders, settings, machine }: LaunchRequest, launched: Launched): void {
  const { image } = folders
  const { diskBytesPerSecond = 0 } = settings
  const timer = setTimeout(() => {
    // Optional, so failures are ignored.
    void enableDirectIo(image).catch(() => undefined)
    try {
      if (diskBytesPerSecond > 0)
        cgroupOf(machine.cgroups, cgroupNameOf(settings, plan.id)).limitDevice(
          deviceNumberOf(image),
          diskBytesPerSecond,
        )
    } catch {
      // Ended, or this kernel cannot; `doctor` reports that.
    }
  }, SETTLED_MS)
  void launched.ended.finally(() => clearTimeout(timer))
}

/** Starts watchdogs for limits that the kernel does not enforce on this machine. */
function startWatchdogs({ plan, folders, settings, machine }: LaunchRequest, launched: Launched): void {
  const { memoryBytes, diskBytes } = plan.limits
  const disk = { rootPid: launched.pid, folders: [folders.files, folders.io], limitBytes: diskBytes }
  const cgroup = cgroupOf(machine.cgroups, cgroupNameOf(settings, plan.id))
  const sockets = { findInit: () => findInit(folders.info), pids: () => cgroup.pids(), memoryBytes }
  const endSandbox = (): void => launched.terminate('oom')
  const watches = startWatches([
    machine.cgroups === 'none'
      ? watchMemory(launched.pid, memoryBytes, endSandbox)
      : watchNetlink(sockets, endSandbox),
    ...(machine.hasImages
      ? []
      : [
          watchDisk(disk, () => launched.terminate('disk_full')),
          watchFullDisk({ rootPid: launched.pid, folder: folders.files }, () =>
            launched.terminate('disk_full'),
          ),
        ]),
  ])
  void launched.ended.finally(() => watches[Symbol.dispose]())
}

async function spawn(
  request: LaunchRequest,
  joinFiles: readonly string[],
): Promise<Bun.Subprocess<'ignore', 'pipe', 'pipe'>> {
  const { plan, folders, ids, settings, machine } = request
  const cacheFolder = cacheFolderOf(settings)
  const stage = prepareStage({
    folders,
    hostname: plan.name,
    daemonId: ids?.daemon,
    memoryBytes: plan.limits.memoryBytes,
    hasImages: machine.hasImages,
    hasOverlays: machine.hasOverlays,
    programs: [...shareDaemon(settings.program), shareAgents(settings.dataFolder)],
    hostEtc: ensureHostEtc(cacheFolder),
    cacheFolder,
  })
  const bwrap = createBwrapArgv({
    hostname: plan.name,
    memory: stage.memory,
    users: ids === undefined ? { kind: 'one' } : { kind: 'two', usernsFd: USERNS_FD },
    filterFd: FILTER_FD,
    infoFd: INFO_FD,
    usrLinks: usrLinks(),
    system: stage.system,
    ...createBindings(request, stage),
    devices: stage.devices,
    terminals: stage.terminals,
    env: DAEMON_ENV,
    command: commandOf(request),
  })
  const steps = {
    joinFiles,
    mounting: stage.mounting,
    hostId: ids?.daemon,
    rlimits: createRlimits(plan.limits, machine.cgroups !== 'none'),
    oomScore: findOomScore(),
  }
  const argv = createLaunchArgv(steps, process.pid, ['bwrap', ...bwrap])
  using namespace = ids === undefined ? undefined : await openUserNamespace(ids)
  using filter = openFile(folders.filter, constants.O_RDONLY)
  using info = openFile(folders.info, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC)
  const extra = namespace === undefined ? [] : [namespace.fd]
  return Bun.spawn(argv, {
    cwd: '/',
    env: SYSTEM_ENV,
    stdio: ['ignore', 'pipe', 'pipe', filter.fd, info.fd, ...extra],
  })
}

function openFile(file: string, flags: number): Disposable & { readonly fd: number } {
  const fd = openSync(file, flags, 0o600)
  return { fd, [Symbol.dispose]: () => closeSync(fd) }
}
