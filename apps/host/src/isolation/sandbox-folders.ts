import { chmodSync, chownSync, closeSync, constants, lstatSync, mkdirSync, openSync } from 'node:fs'
import path from 'node:path'
import { INSIDE, type OutsidePaths } from './isolation.ts'

/** Everything of one sandbox that has a path on this machine. */
export interface SandboxFolders {
  /** Holds all that is made anew after a reboot. */
  readonly run: string
  /** Becomes `INSIDE.run`: sandboxd's socket and the public key. The sandbox can put anything there. */
  readonly io: string
  /** Holds the socket of the egress proxy; read only inside. */
  readonly egress: string
  /** Becomes `/etc`. */
  readonly etc: string
  /** Mount points that only the sandbox's own mount namespace sees filled. */
  readonly stage: string
  /** System call filter for bubblewrap. */
  readonly filter: string
  /** What bubblewrap says about what it started. */
  readonly info: string
  /** Holds `workspace` and `home` where there is no image. */
  readonly files: string
  /** File system of the sandbox, where loop devices work. */
  readonly image: string
}

/** Where the things of a sandbox are; makes none of them. */
export function foldersOf(base: { dataFolder: string; runBase: string }, id: string): SandboxFolders {
  const run = path.join(base.runBase, id)
  const kept = path.join(base.dataFolder, 'isolation')
  return {
    run,
    io: path.join(run, 'io'),
    egress: path.join(run, 'egress'),
    etc: path.join(run, 'etc'),
    stage: path.join(run, 'stage'),
    filter: path.join(run, 'filter.bpf'),
    info: path.join(run, 'info.json'),
    files: path.join(kept, 'files', id),
    image: path.join(kept, 'images', `${id}.ext4`),
  }
}

/** Host ids of a sandbox. They are the same where there is only one. */
export interface SandboxIds {
  /** sandboxd's user and group. */
  readonly daemon: number
  /** User and group of the user's processes. */
  readonly user: number
}

/** Opens a place and not what is in it, which needs no right to read: a folder may keep out its own owner. */
const O_PATH = 0o10000000

/** Makes a folder that belongs to `owner`, or gives an existing one to it. Throws for a link, whatever it leads to. */
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

/** Makes a folder of this user unless there is one; refuses one that somebody else put there, or a link. */
export function ensureOwnedFolder(folder: string, mode: number): void {
  mkdirSync(folder, { recursive: true, mode })
  const found = lstatSync(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw new Error(`Cannot use folder "${folder}": it is somebody else's`)
}

/** Like `ensureOwnedFolder`, and gives the folder this mode. */
export function ensureOwnedFolderMode(folder: string, mode: number): void {
  ensureOwnedFolder(folder, mode)
  chmodSync(folder, mode)
}

/**
 * Where the outside finds a sandbox's things. Files on an image are there only in the sandbox's own mount namespace:
 * from outside they are below `/proc/PID/root` while it runs.
 */
export function outsidePaths(
  folders: SandboxFolders,
  machine: { readonly hasImages: boolean; readonly workspace?: string | undefined },
): OutsidePaths {
  const files = machine.hasImages ? path.join(folders.stage, 'disk') : folders.files
  return {
    daemonSocket: path.join(folders.io, path.basename(INSIDE.daemonSocket)),
    proxySocket: path.join(folders.egress, path.basename(INSIDE.proxySocket)),
    workspace: machine.workspace ?? path.join(files, 'workspace'),
    home: path.join(files, 'home'),
  }
}
