import { closeSync, cpSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Binding, BwrapPlan } from './bwrap-argv.ts'
import type { MountSteps } from './launch-script.ts'
import { planMemoryFolders } from './memory-folders.ts'
import { formatMountTable, type Mount } from './mount-table.ts'
import type { SharedFolder } from './programs.ts'
import { ensureFolder, type SandboxFolders } from './sandbox-folders.ts'
import { maskedProcNames, ownSystemFolders, writeEtcFolder } from './system-files.ts'

/** Terminals of one sandbox; the machine has a few thousand in total. */
const MAX_TERMINALS = 64

/** What a sandbox gets from this machine. */
export interface StageInput {
  readonly folders: SandboxFolders
  readonly hostname: string
  /** Host id of sandboxd, with root. */
  readonly daemonId: number | undefined
  readonly memoryBytes: number
  readonly hasImages: boolean
  readonly hasOverlays: boolean
  readonly programs: readonly SharedFolder[]
  /** Version folder with files of this machine's `/etc`. */
  readonly hostEtc: string
  readonly cacheFolder: string
}

/** Sources that bubblewrap binds. */
export interface Stage {
  /** Absent: bubblewrap's sources need no mount. */
  readonly mounting: MountSteps | undefined
  /** Folders of the system and of programs, read-only. */
  readonly system: readonly Binding[]
  /** Empty files and folders for parts of `/proc`. */
  readonly masks: readonly Binding[]
  /** Folders in memory. */
  readonly memory: BwrapPlan['memory']
  /** Folder with `workspace`, `home` and `state`. */
  readonly files: string
  /** A complete `/dev`; absent: bubblewrap's. */
  readonly devices: string | undefined
  /** A devpts with a limit on terminals; absent: bubblewrap's. */
  readonly terminals: string | undefined
}

/** Symbolic links in `/dev`. */
const DEVICE_LINKS: Readonly<Record<string, string>> = {
  fd: '/proc/self/fd',
  stdin: '/proc/self/fd/0',
  stdout: '/proc/self/fd/1',
  stderr: '/proc/self/fd/2',
  core: '/proc/kcore',
  ptmx: 'pts/ptmx',
}

/**
 * Prepares the sources of a sandbox's mounts. Folders that sandboxes share are mounted as an overlay of its own for each: page
 * cache is shared, but inodes are not, so that watches, locks and leases on them show nothing of other sandboxes or of this machine.
 */
export function prepareStage(input: StageInput): Stage {
  const { folders, daemonId, hasImages, hasOverlays } = input
  const isRoot = daemonId !== undefined
  const at = (name: string): string => path.join(folders.stage, name)
  const mounts: Mount[] = []
  const mount = (name: string, create: (to: string) => Mount): string => {
    ensureFolder(at(name), 0o755)
    mounts.push(create(at(name)))
    return at(name)
  }
  ensureFolder(folders.stage, 0o755)
  ensureFolder(at('empty'), 0o755)
  closeSync(openSync(at('nothing'), 'a', 0o644))
  const system = shareFolders(input, mount)
  const files = !isRoot
    ? folders.files
    : mount('disk', (to) =>
        hasImages
          ? { kind: 'image', from: folders.image, to, daemonId }
          : { kind: 'bind', from: folders.files, to },
      )
  const terminals = isRoot
    ? mount('terminals', (to) => ({ kind: 'terminals', to, max: MAX_TERMINALS }))
    : undefined
  const devices = isRoot
    ? mount('devices', (to) => ({ kind: 'devices', links: makeDeviceLinks(at('device-links')), to }))
    : undefined
  const memory = planMemoryFolders(input.memoryBytes).map((each) => {
    const create = (to: string): Mount => ({ ...each, kind: 'memory', owner: daemonId, to })
    return isRoot || hasOverlays ? { ...each, from: mount(path.basename(each.path), create) } : each
  })
  writeFileSync(folders.mounts, formatMountTable(mounts), { mode: 0o600 })
  return {
    mounting: mounts.length === 0 ? undefined : { mounts, table: folders.mounts, folder: input.cacheFolder },
    system,
    masks: maskedProcNames().map(({ name, kind }) => ({
      from: at(kind === 'folder' ? 'empty' : 'nothing'),
      to: `/proc/${name}`,
    })),
    memory,
    files,
    devices,
    terminals,
  }
}

/** Folders of the system, of programs, and `/etc`. */
function shareFolders(
  { folders, hostname, daemonId, hasOverlays, programs, hostEtc, cacheFolder }: StageInput,
  mount: (name: string, create: (to: string) => Mount) => string,
): Binding[] {
  writeEtcFolder(folders.etc, hostname)
  const shared: readonly SharedFolder[] = [{ from: '/usr', to: '/usr' }, ...ownSystemFolders(), ...programs]
  const bindingOf = ({ to, file }: SharedFolder, mounted: string): Binding => {
    return { from: file === undefined ? mounted : path.join(mounted, file), to }
  }
  const nameOf = (to: string): string => `shared${to.replaceAll('/', '-')}`
  if (hasOverlays) {
    // Relative, because the kernel shows the paths of layers in the sandbox.
    const hidden = (folder: string): string => path.relative(cacheFolder, folder)
    const overlay = (to: string, layers: readonly string[]): string =>
      mount(nameOf(to), (mounted) => ({ kind: 'overlay', layers, to: mounted }))
    const empty = path.join(folders.stage, 'empty')
    const share = (each: SharedFolder): Binding =>
      bindingOf(each, overlay(each.to, [each.isPrivate === true ? hidden(each.from) : each.from, empty]))
    return [...shared.map(share), { from: overlay('/etc', [folders.etc, hidden(hostEtc)]), to: '/etc' }]
  }
  cpSync(hostEtc, folders.etc, { recursive: true, verbatimSymlinks: true })
  const share = (each: SharedFolder): Binding =>
    bindingOf(
      each,
      // A sandbox's uid cannot traverse private folders.
      daemonId !== undefined && each.isPrivate === true
        ? mount(nameOf(each.to), (to) => ({ kind: 'bind', from: each.from, to }))
        : each.from,
    )
  return [...shared.map(share), { from: folders.etc, to: '/etc' }]
}

/** Everything of `/dev` but device nodes. */
function makeDeviceLinks(folder: string): string {
  rmSync(folder, { recursive: true, force: true })
  ensureFolder(folder, 0o755)
  for (const name of ['pts', 'shm']) ensureFolder(path.join(folder, name), 0o755)
  for (const [name, target] of Object.entries(DEVICE_LINKS)) symlinkSync(target, path.join(folder, name))
  return folder
}
