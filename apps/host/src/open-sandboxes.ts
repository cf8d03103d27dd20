import path from 'node:path'
import type { HostHealth } from '@sandwire/internal-api'
import { KeyedSerializer } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import type { ContainerEngine } from './api/routes.ts'
import type { Configuration } from './configuration.ts'
import { openContainers } from './containers/containers.ts'
import { hasRecordedContent } from './data/content-record.ts'
import type { DataFolder } from './data/data-folder.ts'
import { scopeOf } from './data/folder-identity.ts'
import type { Log } from './log.ts'
import type { DiskGuard } from './disk/disk-guard.ts'
import { type Choice, chooseIsolation, hasBubblewrap } from './isolation/choose-isolation.ts'
import { BUNDLE_ENTRY, bundleDaemon, bundleEgress } from './isolation/daemon-bundle.ts'
import { hasLoopDevices } from './isolation/disk-image.ts'
import { installBubblewrap, planBubblewrap } from './isolation/install-bubblewrap.ts'
import { defaultRunBase, type IsolationSettings } from './isolation/isolation.ts'
import { canMountOverlays } from './isolation/overlays.ts'
import { ensureOwnedFolder } from './isolation/sandbox-folders.ts'
import { ensureHostEtc } from './isolation/system-files.ts'
import { findTool } from './isolation/system-tools.ts'
import type { Machine } from './machine.ts'
import { createSandboxManager, type SandboxManager } from './sandboxes/sandbox-manager.ts'
import { gatesFolder } from './slots/gates.ts'
import { planSlots, Slots, socketsOf } from './slots/slots.ts'
import { limitSupervisor } from './supervisor/supervisor-privileges.ts'

type Environment = Readonly<Record<string, string | undefined>>

const DAEMON_SOURCE = path.resolve(import.meta.dir, '../../sandboxd/src')
const SUPERVISOR = [process.execPath, path.join(import.meta.dir, 'supervisor/main.ts')]

/** The provider of sandboxes on this machine, and its weaknesses. */
export interface Sandboxes {
  readonly isolation: HostHealth['isolation']
  /** Absent when control creates sandboxes itself, as containers or sprites. */
  readonly manager?: SandboxManager
  /** The container engine; absent when there is a manager. */
  readonly engine?: ContainerEngine
  /** Socket of the egress proxy of containers; absent when there is a manager. */
  readonly egressSocket?: string
  /** Slot sockets of sandboxes; all of them are in control's configuration. */
  readonly slots: readonly string[]
  /** Folder for control's gates, one for each slot; absent with containers. */
  readonly gates?: string
  readonly weaknesses: readonly string[]
  /** Programs that sandboxes use from this machine and that are not installed. */
  readonly missingPrograms: readonly string[]
  /** Keeps space for control on the disk of the data folder. */
  readonly disk: DiskGuard
  /** One line for the user when isolation is weaker than bubblewrap's. */
  readonly notice?: string
  /** Finds sandboxes that outlived the last host; returns their number. */
  adopt(): Promise<number>
  /** Stops sandboxes whose files control saves while they stop; absent where it does not. */
  stopWithControl?(): Promise<void>
  /** Releases the sandboxes; with `stop`, stops them first. */
  close(options: { readonly stop: boolean }): Promise<void>
}

/** Dependencies of `openSandboxes`. */
export interface OpenSandboxesOptions {
  readonly configuration: Pick<
    Configuration,
    'isolation' | 'workspace' | 'containers' | 'sprites' | 'disk' | 'store'
  >
  readonly folder: DataFolder
  readonly machine: Pick<Machine, 'running'>
  /** Private folder with a path short enough for unix sockets. */
  readonly socketFolder: string
  readonly env: Environment
  /** Group of control, if it runs as another user. */
  readonly controlGroup?: number
  /** Closes control's connections to sandboxes, except those whose sandboxd is one of these processes. */
  readonly closeConnections: (exceptPids: ReadonlySet<number>) => void
  readonly openDisk: (hasImages: boolean) => DiskGuard
  /** workerd's process; undefined while it does not run. */
  readonly workerdPid: () => number | undefined
  readonly log: Log
  readonly notify: (line: string) => void
}

/** Installs bubblewrap if possible; returns why that failed. Throws when bubblewrap is required and not available. */
async function provideBubblewrap({
  configuration,
  notify,
}: OpenSandboxesOptions): Promise<string | undefined> {
  const plan = planBubblewrap({
    wanted: configuration.isolation,
    isInstalled: hasBubblewrap(),
    isRoot: process.getuid?.() === 0,
    hasApt: Bun.which('apt-get') !== null,
  })
  if (plan.kind === 'refuse')
    throw new SandwireError(
      'provider_unavailable',
      `Cannot isolate sandboxes: ${plan.reason}\nhint: install it, or unset SANDWIRE_ISOLATION`,
    )
  if (plan.kind !== 'install') return undefined
  notify('Installing bubblewrap to isolate sandboxes …')
  return installBubblewrap()
}

/** Creates the folder for sandbox sockets before another user can; its parent may be world-writable. */
function claimRunBase({ runBase }: IsolationSettings): void {
  try {
    ensureOwnedFolder(runBase, 0o700)
  } catch (cause) {
    throw new SandwireError(
      'forbidden',
      `Cannot use "${runBase}" for sandbox sockets: not a folder of this user\nhint: remove it, or set XDG_RUNTIME_DIR to a folder of this user`,
      { cause },
    )
  }
}

/**
 * Settings for isolations, with the current sandboxd bundled. Processes that serve a folder run as its owner, as without root;
 * their sockets have a folder of their own, because its mode differs.
 */
export async function describeMachine(
  { root, cache, identity }: DataFolder,
  env: Environment,
  workspace?: string,
): Promise<IsolationSettings> {
  const uid = process.getuid?.() ?? 0
  const isRoot = uid === 0 && workspace === undefined
  const [folder, egressCode, hasOverlays] = await Promise.all([
    bundleDaemon(DAEMON_SOURCE, cache),
    bundleEgress(cache),
    canMountOverlays(isRoot, cache),
  ])
  // Checked here, so that the start of a sandbox need not.
  ensureHostEtc(cache, hasRecordedContent)
  const runBase = defaultRunBase(env, uid)
  const program = { executable: process.execPath, code: { folder, entry: BUNDLE_ENTRY } }
  const scope = scopeOf({ identity })
  const common = {
    dataFolder: root,
    program,
    isRoot,
    egressCode,
    hasOverlays,
    ...(scope !== undefined && { scope }),
  }
  if (workspace === undefined) return { ...common, runBase }
  return { ...common, runBase: `${runBase}-local`, workspace }
}

/** Rebuilds the bundles that sandboxes use if they are damaged or missing, at the same paths; true when it did. */
async function repairBundles(
  { program, egressCode = '' }: IsolationSettings,
  { cache }: DataFolder,
): Promise<boolean> {
  const folders = [program.code?.folder ?? '', egressCode]
  if (folders.every((folder) => hasRecordedContent(folder))) return false
  await Promise.all([bundleDaemon(DAEMON_SOURCE, cache), bundleEgress(cache)])
  return folders.every((folder) => hasRecordedContent(folder))
}

/** Chooses the isolation. Throws when bubblewrap is required and does not work. */
async function pickIsolation(
  settings: IsolationSettings,
  { configuration: { isolation: wanted } }: OpenSandboxesOptions,
  installFailure: string | undefined,
): Promise<Choice> {
  const found = await chooseIsolation(settings, { SANDWIRE_ISOLATION: wanted })
  const choice =
    installFailure === undefined
      ? found
      : { ...found, notice: `${found.notice ?? 'Cannot install bubblewrap'} (apt-get: ${installFailure})` }
  if (wanted === 'bubblewrap' && choice.isolation.kind !== 'bubblewrap')
    throw new SandwireError(
      'provider_unavailable',
      `${choice.notice ?? 'Cannot isolate sandboxes'}\nhint: unset SANDWIRE_ISOLATION to run without isolation, on loopback only`,
    )
  return choice
}

/** Opens the provider of a data folder's sandboxes. */
export async function openSandboxes(options: OpenSandboxesOptions): Promise<Sandboxes> {
  const { containers, sprites } = options.configuration
  if (sprites !== undefined) return openRemote(options)
  if (containers === undefined) return openHosted(options)
  const opened = await openContainers(containers, options)
  return { ...opened, disk: options.openDisk(false) }
}

/** Sandboxes that are not on this machine: control starts, reaches and stops them itself, and they outlive this server. */
function openRemote({ openDisk }: OpenSandboxesOptions): Sandboxes {
  return {
    isolation: 'sprite',
    slots: [],
    weaknesses: [],
    missingPrograms: [],
    disk: openDisk(false),
    adopt: async () => 0,
    close: async () => undefined,
  }
}

async function openHosted(options: OpenSandboxesOptions): Promise<Sandboxes> {
  const { configuration, folder, socketFolder, env } = options
  const [found, installFailure] = await Promise.all([
    describeMachine(folder, env, configuration.workspace),
    provideBubblewrap(options),
  ])
  const settings = { ...found, diskBytesPerSecond: configuration.disk.bytesPerSecond }
  claimRunBase(settings)
  const { isolation, notice } = await pickIsolation(settings, options, installFailure)
  const slots = planSlots(settings, options.machine.running, options.controlGroup)
  new Slots(slots).open()
  const gates = gatesFolder(slots)
  const disk = options.openDisk(isolation.kind === 'bubblewrap' && hasLoopDevices(settings.isRoot))
  const repairs = new KeyedSerializer<boolean>()
  const savesFiles = configuration.store !== undefined
  const manager = createSandboxManager({
    sandboxesFolder: folder.sandboxes,
    controlFolder: socketFolder,
    isolation,
    settings,
    supervisor: [...limitSupervisor(process.getuid?.() === 0, !settings.isRoot), ...SUPERVISOR],
    slots,
    gates,
    savesFiles,
    closeConnections: options.closeConnections,
    disk,
    repairPrograms: () => repairs.runShared('', () => repairBundles(settings, folder)),
  })
  return {
    isolation: isolation.kind,
    manager,
    disk,
    slots: socketsOf(slots),
    gates,
    weaknesses: isolation.weaknesses,
    missingPrograms: findTool('git') === null ? ['git'] : [],
    ...(notice !== undefined && { notice }),
    adopt: async () => (await manager.adopt()).length,
    // What fails here is reported by `close`, which tries again.
    ...(savesFiles && { stopWithControl: () => manager.close({ stop: true }).catch(() => undefined) }),
    close: (options) => manager.close(options),
  }
}
