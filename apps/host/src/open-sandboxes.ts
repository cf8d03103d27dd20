import path from 'node:path'
import type { HostHealth } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { ContainerEngine } from './api/routes.ts'
import type { Configuration } from './configuration.ts'
import { openContainers } from './containers/containers.ts'
import { MAX_SANDBOXES } from './control/boot.ts'
import type { DataFolder } from './data/data-folder.ts'
import { type Choice, chooseIsolation, hasBubblewrap } from './isolation/choose-isolation.ts'
import { BUNDLE_ENTRY, bundleDaemon } from './isolation/daemon-bundle.ts'
import { installBubblewrap, planBubblewrap } from './isolation/install-bubblewrap.ts'
import { defaultRunBase, type IsolationSettings } from './isolation/isolation.ts'
import { ensureOwnedFolder } from './isolation/sandbox-folders.ts'
import { findTool } from './isolation/system-tools.ts'
import { createSandboxManager, type SandboxManager } from './sandboxes/sandbox-manager.ts'
import { planSlots, socketsOf } from './slots/slots.ts'

type Environment = Readonly<Record<string, string | undefined>>

const DAEMON_SOURCE = path.resolve(import.meta.dir, '../../sandboxd/src')
const SUPERVISOR = [process.execPath, path.join(import.meta.dir, 'supervisor/main.ts')]

/** What makes sandboxes here, and what is weak about it on this machine. */
export interface Sandboxes {
  readonly isolation: HostHealth['isolation']
  /** What makes them on behalf of control; absent: control does, with the containers of its objects. */
  readonly manager?: SandboxManager
  /** What those are made with; absent where there is a manager. */
  readonly engine?: ContainerEngine
  /** Sockets that lead into sandboxes; control is told of all of them when it starts. */
  readonly slots: readonly string[]
  readonly weaknesses: readonly string[]
  /** Programs that sandboxes take from this machine and that are not installed. */
  readonly missingPrograms: readonly string[]
  /** One line for the user when sandboxes are less isolated than they could be. */
  readonly notice?: string
  /** Finds those that outlived the last host, and says how many. */
  adopt(): Promise<number>
  /** Lets go of them. With `stop` it ends them first. */
  close(options: { readonly stop: boolean }): Promise<void>
}

/** What is needed to open them. */
export interface OpenSandboxesOptions {
  readonly configuration: Pick<Configuration, 'isolation' | 'workspace' | 'containers'>
  readonly folder: DataFolder
  /** Private folder whose path is short enough for sockets in it. */
  readonly socketFolder: string
  readonly env: Environment
  /** Cuts control's connections into sandboxes but those that these processes listen for. */
  readonly closeConnections: (exceptPids: ReadonlySet<number>) => void
  readonly notify: (line: string) => void
}

/** Installs bubblewrap where it is missing and can be; returns why that failed. Throws when it was stopRequested for and cannot be had. */
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
  notify('Installing bubblewrap, which keeps sandboxes apart from this machine …')
  return installBubblewrap()
}

/** Makes the folder that sockets of sandboxes are below, before somebody else can; it may be in a place open to all. */
function claimRunBase({ runBase }: IsolationSettings): void {
  try {
    ensureOwnedFolder(runBase, 0o700)
  } catch (cause) {
    throw new SandwireError(
      'forbidden',
      `Cannot use "${runBase}" for the sockets of sandboxes: it is not a folder of this user\nhint: have it removed, or set XDG_RUNTIME_DIR to a folder of your own`,
      { cause },
    )
  }
}

/**
 * What isolations need to know, with sandboxd bundled as it is now. A served folder can be written by its owner alone, so processes
 * are that user, as they would be without root; the folder for sockets is another, because its rights differ.
 */
export async function describeMachine(
  { root, cache }: DataFolder,
  env: Environment,
  workspace?: string,
): Promise<IsolationSettings> {
  const uid = process.getuid?.() ?? 0
  const code = { folder: await bundleDaemon(DAEMON_SOURCE, cache), entry: BUNDLE_ENTRY }
  const runBase = defaultRunBase(env, uid)
  const common = { dataFolder: root, program: { executable: process.execPath, code } }
  if (workspace === undefined) return { ...common, runBase, isRoot: uid === 0 }
  return { ...common, runBase: `${runBase}-local`, isRoot: false, workspace }
}

/** Picks the isolation; bubblewrap that was stopRequested for and does not work is an error, not a reason to go without. */
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
      `${choice.notice ?? 'Cannot isolate sandboxes'}\nhint: unset SANDWIRE_ISOLATION to run without, on loopback only`,
    )
  return choice
}

/** Opens what makes the sandboxes of a data folder. */
export async function openSandboxes(options: OpenSandboxesOptions): Promise<Sandboxes> {
  const { containers } = options.configuration
  return containers === undefined ? openHosted(options) : openContainers(containers, options.folder.objects)
}

async function openHosted(options: OpenSandboxesOptions): Promise<Sandboxes> {
  const { configuration, folder, socketFolder, env } = options
  const [settings, installFailure] = await Promise.all([
    describeMachine(folder, env, configuration.workspace),
    provideBubblewrap(options),
  ])
  claimRunBase(settings)
  const { isolation, notice } = await pickIsolation(settings, options, installFailure)
  const slots = planSlots(settings, MAX_SANDBOXES)
  const manager = createSandboxManager({
    sandboxesFolder: folder.sandboxes,
    controlFolder: socketFolder,
    isolation,
    settings,
    supervisor: SUPERVISOR,
    slots,
    closeConnections: options.closeConnections,
  })
  return {
    isolation: isolation.kind,
    manager,
    slots: socketsOf(slots),
    weaknesses: isolation.weaknesses,
    missingPrograms: findTool('git') === null ? ['git'] : [],
    ...(notice !== undefined && { notice }),
    adopt: async () => (await manager.adopt()).length,
    close: (options) => manager.close(options),
  }
}
