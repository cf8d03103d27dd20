import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
} from 'node:fs'
import path from 'node:path'
import { MissingFile } from '../data/folder-problem.ts'
import {
  INSIDE,
  type IsolationSettings,
  nameOnMachine,
  type OutsidePaths,
  type PreparePlan,
} from './isolation.ts'

/** Paths of one sandbox on this machine. */
export interface SandboxFolders {
  /** Recreated after a reboot. */
  readonly run: string
  /** Bound to `INSIDE.run`: sandboxd's socket and the public key. The sandbox can write to it. */
  readonly io: string
  /** Contains the socket of the egress proxy; read-only inside. */
  readonly egress: string
  /** Contains the socket of the credential gateway; read-only inside. */
  readonly gateway: string
  /** Generated files of `/etc`. */
  readonly etc: string
  /** Mount points of the sandbox's mount namespace. */
  readonly stage: string
  /** Mounts below `stage`. */
  readonly mounts: string
  /** System call filter for bubblewrap. */
  readonly filter: string
  /** Info that bubblewrap writes. */
  readonly info: string
  /** The sandbox's init, for cleanup after a supervisor that died. */
  readonly init: string
  /** Contains `workspace`, `home` and `state` when there is no image. */
  readonly files: string
  /** Disk image, when loop devices work. */
  readonly image: string
  /** UUID of the newest image, apart from the image itself. */
  readonly imageId: string
}

/** Paths of a sandbox; creates nothing. */
export function foldersOf(
  base: Pick<IsolationSettings, 'dataFolder' | 'runBase' | 'scope'>,
  id: string,
): SandboxFolders {
  const run = path.join(base.runBase, nameOnMachine(base, id))
  const kept = path.join(base.dataFolder, 'isolation')
  return {
    run,
    io: path.join(run, 'io'),
    egress: path.join(run, 'egress'),
    gateway: path.join(run, 'gateway'),
    etc: path.join(run, 'etc'),
    stage: path.join(run, 'stage'),
    mounts: path.join(run, 'mounts'),
    filter: path.join(run, 'filter.bpf'),
    info: path.join(run, 'info.json'),
    init: path.join(run, 'init.json'),
    files: path.join(kept, 'files', id),
    image: path.join(kept, 'images', `${id}.ext4`),
    imageId: path.join(base.dataFolder, 'sandboxes', id, 'image-id'),
  }
}

/** Folder of bundles and other version folders. */
export function cacheFolderOf({ dataFolder }: { dataFolder: string }): string {
  return path.join(dataFolder, 'cache')
}

/** Host ids of a sandbox. */
export interface SandboxIds {
  /** sandboxd's user and group. */
  readonly daemon: number
  /** User and group of the user's processes. */
  readonly user: number
  /** User and group of the egress proxy. */
  readonly egress: number
}

/** Throws when files that must exist are missing, for instance because their disk is not mounted. */
export function requireFiles({ hasFiles }: PreparePlan, file: string, isThere = existsSync(file)): void {
  if (hasFiles === true && !isThere) throw new MissingFile(file)
}

/** Opens a path without read permission, which its owner may lack. */
const O_PATH = 0o10000000

/** Creates a folder owned by `owner`, or changes the owner of an existing one. Throws for a symbolic link. */
export function ensureFolder(folder: string, mode: number, owner?: { uid: number; gid: number }): void {
  mkdirSync(folder, { recursive: true, mode })
  const fd = openSync(folder, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  const opened = `/proc/self/fd/${fd}`
  try {
    chmodSync(opened, mode)
    if (owner !== undefined) chownSync(opened, owner.uid, owner.gid)
  } finally {
    closeSync(fd)
  }
}

/** Creates a folder unless it exists; throws for another user's folder and for a symbolic link. */
export function ensureOwnedFolder(folder: string, mode: number): void {
  mkdirSync(folder, { recursive: true, mode })
  const found = lstatSync(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw new Error(`Cannot use folder "${folder}": it belongs to another user`)
}

/** Like `ensureOwnedFolder`, and sets the mode. */
export function ensureOwnedFolderMode(folder: string, mode: number): void {
  ensureOwnedFolder(folder, mode)
  chmodSync(folder, mode)
}

/**
 * Paths on this machine. Files on an image exist only in the sandbox's mount namespace: from outside they are below
 * `/proc/PID/root` while it runs.
 */
export function outsidePaths(
  folders: SandboxFolders,
  machine: { readonly hasImages: boolean; readonly workspace?: string | undefined },
): OutsidePaths {
  const files = machine.hasImages ? path.join(folders.stage, 'disk') : folders.files
  return {
    daemonSocket: path.join(folders.io, path.basename(INSIDE.daemonSocket)),
    proxySocket: path.join(folders.egress, path.basename(INSIDE.proxySocket)),
    gatewaySocket: path.join(folders.gateway, path.basename(INSIDE.gatewaySocket)),
    workspace: machine.workspace ?? path.join(files, 'workspace'),
    home: path.join(files, 'home'),
    state: path.join(files, 'state'),
  }
}
