import { canLimitGrowth } from '../disk/image-growth.ts'
import { pollUntil } from '../poll.ts'
import {
  canLimitDevices,
  type Cgroup,
  type CgroupKind,
  cgroupOf,
  detectCgroups,
  findCgroup,
} from './cgroups.ts'
import {
  ensureOwnImage,
  hasLoopDevices,
  isOwnImage,
  removeUnfinishedImage,
  replacedFolder,
} from './disk-image.ts'
import {
  type Isolation,
  type IsolationSettings,
  type LaunchPlan,
  cgroupNameOf,
  type OutsidePaths,
  type PreparePlan,
} from './isolation.ts'
import { launchEgress } from './launch-egress.ts'
import { launchInBubblewrap, type Machine } from './launch.ts'
import { listProcesses, signalProcess } from './process-table.ts'
import { canMountOverlays } from './overlays.ts'
import { removeTree } from './remove-tree.ts'
import {
  cacheFolderOf,
  ensureFolder,
  ensureOwnedFolderMode,
  foldersOf,
  outsidePaths,
  requireFiles,
  type SandboxFolders,
  type SandboxIds,
} from './sandbox-folders.ts'
import { SandboxInit } from './sandbox-init.ts'
import { UidClaims, UidsInUse } from './uid-claims.ts'

/** Time for killed processes to disappear. */
const REMOVE_MS = 5_000

/** Isolates sandboxes with bubblewrap. */
class Bubblewrap implements Isolation {
  readonly kind = 'bubblewrap'
  readonly weaknesses: readonly string[]
  readonly #settings: IsolationSettings
  readonly #machine: Omit<Machine, 'hasOverlays'>
  readonly #claims: UidClaims
  readonly #idsInUse: UidsInUse

  constructor(settings: IsolationSettings) {
    this.#settings = settings
    const cgroups = detectCgroups()
    this.#machine = { cgroups, hasImages: hasLoopDevices(settings.isRoot) }
    this.#claims = new UidClaims(settings.dataFolder)
    this.#idsInUse = new UidsInUse(settings.runBase, settings.scope ?? settings.dataFolder)
    this.weaknesses = describeWeaknesses(settings, this.#machine)
  }

  filesOf(id: string): string {
    const { image, files } = foldersOf(this.#settings, id)
    return this.#machine.hasImages ? image : files
  }

  async prepare(plan: PreparePlan): Promise<OutsidePaths> {
    const folders = foldersOf(this.#settings, plan.id)
    if (this.#machine.hasImages) requireFiles(plan, folders.image, isOwnImage(folders))
    else requireFiles(plan, folders.files)
    const ids = this.#settings.isRoot ? this.#claimIds(plan.id) : undefined
    if (ids !== undefined) this.#idsInUse.take(ids, () => pidsOf(ids).length === 0)
    await prepareRunFolder(this.#settings.runBase, folders, ids)
    if (this.#machine.hasImages && ids !== undefined) {
      await ensureOwnImage(folders, plan.limits.diskBytes, ids)
    } else {
      const owner = ids === undefined ? undefined : { uid: ids.user, gid: ids.user }
      ensureFolder(folders.files, 0o755)
      for (const name of ['workspace', 'home']) ensureFolder(`${folders.files}/${name}`, 0o755, owner)
      const daemon = ids === undefined ? undefined : { uid: ids.daemon, gid: ids.daemon }
      ensureFolder(`${folders.files}/state`, 0o711, daemon)
    }
    return outsidePaths(folders, { ...this.#machine, workspace: this.#settings.workspace })
  }

  launchEgress(id: string): ReturnType<Isolation['launchEgress']> {
    const ids = this.#settings.isRoot ? this.#claimIds(id) : undefined
    return launchEgress(foldersOf(this.#settings, id), ids, this.#settings, this.#egressCgroup(id))
  }

  async launch(plan: LaunchPlan): ReturnType<Isolation['launch']> {
    const { isRoot, hasOverlays } = this.#settings
    const machine = {
      ...this.#machine,
      hasOverlays: hasOverlays ?? (await canMountOverlays(isRoot, cacheFolderOf(this.#settings))),
    }
    const folders = foldersOf(this.#settings, plan.id)
    const ids = this.#settings.isRoot ? this.#claimIds(plan.id) : undefined
    return launchInBubblewrap({ plan, folders, ids, settings: this.#settings, machine })
  }

  async sweep(id: string): Promise<void> {
    const claimed = this.#claims.find(id)
    const ids = claimed !== undefined && this.#idsInUse.isOthers(claimed) ? undefined : claimed
    const cgroup = this.#cgroup(id)
    const egress = this.#egressCgroup(id)
    const init = SandboxInit.read(foldersOf(this.#settings, id))
    const isOver = await pollUntil(() => {
      init.kill()
      const pids = [...cgroup.pids(), ...egress.pids(), ...(ids === undefined ? [] : pidsOf(ids))]
      for (const pid of pids) signalProcess(pid, 'SIGKILL')
      return pids.length === 0 && init.isGone
    }, REMOVE_MS)
    if (!isOver) throw new Error(`Cannot remove sandbox "${id}": its processes do not end`)
    cgroup.remove()
    egress.remove()
    await removeTree(foldersOf(this.#settings, id).run)
    if (ids !== undefined) this.#idsInUse.release(ids)
  }

  async remove(id: string): Promise<void> {
    await this.sweep(id)
    const folders = foldersOf(this.#settings, id)
    for (const each of [folders.files, folders.image, replacedFolder(folders.image)]) await removeTree(each)
    removeUnfinishedImage(folders.image)
    this.#claims.release(id)
  }

  /** A supervisor knows the account of its sandbox; the host looks for the cgroup of a supervisor that died. */
  #cgroup(id: string): Cgroup {
    const kind = this.#machine.cgroups
    const name = cgroupNameOf(this.#settings, id)
    return cgroupOf(kind, this.#settings.account === undefined ? findCgroup(kind, name) : name)
  }

  #egressCgroup(id: string): Cgroup {
    return this.#cgroup(`${id}-egress`)
  }

  #claimIds(id: string): SandboxIds {
    return this.#claims.claim(id, (ids) => pidsOf(ids).length === 0)
  }
}

/** Processes with one of the ids. */
function pidsOf(ids: SandboxIds): number[] {
  return listProcesses()
    .filter(({ uid, isZombie }) => !isZombie && [ids.daemon, ids.user, ids.egress].includes(uid))
    .map(({ pid }) => pid)
}

async function prepareRunFolder(
  runBase: string,
  folders: SandboxFolders,
  ids: SandboxIds | undefined,
): Promise<void> {
  // With root, uids of sandboxes and egress proxies traverse these folders. What is private has its own mode.
  ensureOwnedFolderMode(runBase, ids === undefined ? 0o700 : 0o711)
  ensureFolder(folders.run, ids === undefined ? 0o700 : 0o711, ids && { uid: 0, gid: 0 })
  // An earlier run of the sandbox may have left symbolic links.
  await removeTree(folders.io)
  ensureFolder(folders.io, 0o700, ids && { uid: ids.daemon, gid: ids.daemon })
  await removeTree(folders.egress)
  ensureFolder(folders.egress, ids === undefined ? 0o700 : 0o710, ids && { uid: ids.egress, gid: ids.daemon })
  await removeTree(folders.gateway)
  ensureFolder(folders.gateway, ids === undefined ? 0o700 : 0o710, ids && { uid: 0, gid: ids.daemon })
}

function describeLimits(kind: CgroupKind): string[] {
  return kind === 'none'
    ? [
        'memory, CPU and process limits by watchdog and rlimits: no writable cgroup',
        'memory of the kernel for file locks and for many small mappings is not counted: no writable cgroup',
      ]
    : []
}

function describeDisk(why: string): string[] {
  const hidden = `deleted files held open by non-dumpable processes are not counted: ${why}`
  return [`disk limit by watchdog: ${why}`, ...(process.getuid?.() === 0 ? [] : [hidden])]
}

function describeWeaknesses(
  { isRoot, workspace, hasOverlays }: IsolationSettings,
  machine: Omit<Machine, 'hasOverlays'>,
): string[] {
  const why = workspace === undefined ? 'not started as root' : 'a served folder is accessed as its owner'
  return [
    ...(isRoot ? [] : [`one uid for sandboxd and user processes: ${why}`]),
    ...describeLimits(machine.cgroups),
    ...(workspace === undefined ? [] : ['the served folder has no size limit']),
    ...(machine.hasImages && canLimitDevices(machine.cgroups)
      ? []
      : [`disk bandwidth is not limited: ${isRoot ? 'no cgroup with io or blkio' : why}`]),
    ...(isRoot || hasOverlays !== false
      ? []
      : ['the number of files in /tmp is not limited: this user cannot mount']),
    ...(machine.hasImages ? [] : describeDisk(isRoot ? 'no loop devices' : why)),
    ...(machine.hasImages && !canLimitGrowth()
      ? ['each disk image counts with its whole size: /sys is read-only']
      : []),
    ...(hasOverlays === false
      ? ['other sandboxes can see which system programs a sandbox runs: this user cannot mount overlays']
      : []),
    ...(isRoot ? [] : [`other sandboxes can see the use of /dev/null and other devices: ${why}`]),
    ...(isRoot ? [] : [`terminals are limited only by the number of open files: ${why}`]),
  ]
}

/** Isolation by bubblewrap, which must be installed and able to create user namespaces; `chooseIsolation` checks. */
export function createBubblewrap(settings: IsolationSettings): Isolation {
  return new Bubblewrap(settings)
}
