import { pollUntil } from '../poll.ts'
import { type CgroupKind, cgroupOf, detectCgroups } from './cgroups.ts'
import { ensureDiskImage, hasLoopDevices } from './disk-image.ts'
import type { Isolation, IsolationSettings, LaunchPlan, OutsidePaths } from './isolation.ts'
import { launchInBubblewrap, type Machine } from './launch.ts'
import { listProcesses, signalProcess } from './process-table.ts'
import { removeTree } from './remove-tree.ts'
import {
  ensureFolder,
  ensureOwnedFolderMode,
  foldersOf,
  outsidePaths,
  type SandboxFolders,
  type SandboxIds,
} from './sandbox-folders.ts'
import { UidClaims } from './uid-claims.ts'

/** How long processes that were killed may take to be gone. */
const REMOVE_MS = 5_000

/** Isolates sandboxes with bubblewrap. */
class Bubblewrap implements Isolation {
  readonly kind = 'bubblewrap'
  readonly weaknesses: readonly string[]
  readonly #settings: IsolationSettings
  readonly #machine: Machine
  readonly #claims: UidClaims

  constructor(settings: IsolationSettings) {
    this.#settings = settings
    const cgroups = detectCgroups()
    this.#machine = { cgroups, hasImages: hasLoopDevices(settings.isRoot) }
    this.#claims = new UidClaims(settings.dataFolder)
    this.weaknesses = describeWeaknesses(settings, this.#machine)
  }

  async prepare(plan: Pick<LaunchPlan, 'id' | 'limits'>): Promise<OutsidePaths> {
    const folders = foldersOf(this.#settings, plan.id)
    const ids = this.#settings.isRoot ? this.#claimIds(plan.id) : undefined
    await prepareRunFolder(this.#settings.runBase, folders, ids)
    if (this.#machine.hasImages && ids !== undefined) {
      await ensureDiskImage(folders.image, plan.limits.diskBytes, ids)
    } else {
      const owner = ids === undefined ? undefined : { uid: ids.user, gid: ids.user }
      ensureFolder(folders.files, 0o755)
      for (const name of ['workspace', 'home']) ensureFolder(`${folders.files}/${name}`, 0o755, owner)
    }
    return outsidePaths(folders, { ...this.#machine, workspace: this.#settings.workspace })
  }

  async launch(plan: LaunchPlan): ReturnType<Isolation['launch']> {
    const folders = foldersOf(this.#settings, plan.id)
    const ids = this.#settings.isRoot ? this.#claimIds(plan.id) : undefined
    return launchInBubblewrap({ plan, folders, ids, settings: this.#settings, machine: this.#machine })
  }

  async sweep(id: string): Promise<void> {
    const ids = this.#claims.find(id)
    const cgroup = cgroupOf(this.#machine.cgroups, id)
    const isOver = await pollUntil(() => {
      const pids = [...cgroup.pids(), ...(ids === undefined ? [] : pidsOf(ids))]
      for (const pid of pids) signalProcess(pid, 'SIGKILL')
      return pids.length === 0
    }, REMOVE_MS)
    if (!isOver) throw new Error(`Cannot remove sandbox "${id}": it does not end`)
    cgroup.remove()
    await removeTree(foldersOf(this.#settings, id).run)
  }

  async remove(id: string): Promise<void> {
    await this.sweep(id)
    const folders = foldersOf(this.#settings, id)
    for (const each of [folders.files, folders.image]) await removeTree(each)
    this.#claims.release(id)
  }

  #claimIds(id: string): SandboxIds {
    return this.#claims.claim(id, (ids) => pidsOf(ids).length === 0)
  }
}

/** Processes of this machine that have one of the ids. */
function pidsOf(ids: SandboxIds): number[] {
  return listProcesses()
    .filter(({ uid, isZombie }) => !isZombie && (uid === ids.daemon || uid === ids.user))
    .map(({ pid }) => pid)
}

async function prepareRunFolder(
  runBase: string,
  folders: SandboxFolders,
  ids: SandboxIds | undefined,
): Promise<void> {
  // Root's is walked by the ids of sandboxes, each of which enters only its own.
  ensureOwnedFolderMode(runBase, ids === undefined ? 0o700 : 0o711)
  ensureFolder(folders.run, ids === undefined ? 0o700 : 0o710, ids && { uid: 0, gid: ids.daemon })
  // What an earlier life of the sandbox left there could lead anywhere.
  await removeTree(folders.io)
  ensureFolder(folders.io, 0o700, ids && { uid: ids.daemon, gid: ids.daemon })
  ensureFolder(folders.egress, ids === undefined ? 0o700 : 0o710, ids && { uid: 0, gid: ids.daemon })
}

function describeLimits(kind: CgroupKind): string[] {
  return kind === 'none'
    ? [
        'memory, processor and process limits by watchdog and resource limits: no cgroup to write',
        'memory of sockets and queues, and files in memory of processes that hide, are not counted: no cgroup to write',
      ]
    : []
}

function describeDisk(why: string): string[] {
  const hidden = `deleted files that processes which hide hold open are not counted: ${why}`
  return [`disk limit by watchdog: ${why}`, ...(process.getuid?.() === 0 ? [] : [hidden])]
}

function describeWeaknesses({ isRoot, workspace }: IsolationSettings, machine: Machine): string[] {
  const why = workspace === undefined ? 'not started as root' : 'a served folder is used as its owner'
  return [
    ...(isRoot ? [] : [`one uid for sandboxd and user processes: ${why}`]),
    ...describeLimits(machine.cgroups),
    ...(workspace === undefined ? [] : ['the served folder has no size limit']),
    ...(machine.hasImages ? [] : describeDisk(isRoot ? 'no loop devices' : why)),
    ...(isRoot ? [] : [`terminals of a sandbox are not limited apart from its open files: ${why}`]),
  ]
}

/** Sandboxes in bubblewrap. It must be installed and allowed to make user namespaces; `chooseIsolation` finds out. */
export function createBubblewrap(settings: IsolationSettings): Isolation {
  return new Bubblewrap(settings)
}
