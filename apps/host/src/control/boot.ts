import { accessSync, constants, mkdirSync } from 'node:fs'
import path from 'node:path'
import type { Config } from 'miniflare'
import type { Configuration } from '../configuration.ts'
import type { DataFolder } from '../data/data-folder.ts'
import type { Keys } from '../data/keys.ts'
import { describeCause, type Log } from '../log.ts'
import { refuseBrokenDatabases } from './broken-databases.ts'
import { bundleControl } from './bundle.ts'
import { ControlLog } from './control-log.ts'
import { removeEmptyObjects } from './empty-objects.ts'
import { recordWorkerd } from './orphan.ts'
import { findPrivateAddresses } from './issuer-network.ts'
import { SettingsRefusal } from './probe.ts'
import { nameServer, type ServerNames } from './server-names.ts'
import { Workerd } from './workerd.ts'
import { type ControlConfig, describeWorkerd, SANDBOX_OBJECTS } from './workerd-config.ts'
import { findWorkbench, prepareWorkbench } from './workbench-files.ts'
import { findWorkerd } from './workerd-program.ts'

/** Idle time after which control stops a sandbox. */
const SLEEP_AFTER_MS = 600_000
/** How often control looks at a sandbox that runs. */
const ALARM_MS = 30_000
/** Sandboxes of this machine, each with a slot of its own. A thousand would make the start 20 ms slower. */
export const MAX_SANDBOXES = 100

const ROOT = path.resolve(import.meta.dir, '../../../..')

/** The Worker's source. */
export const CONTROL_ENTRY = path.resolve(import.meta.dir, '../../../control/src/index.ts')

/** What can be made before the port is known. */
export interface PreparedControl {
  /** The Worker as one module. */
  readonly script: string
  readonly encode: (config: Config) => Uint8Array
  /** Folder with the files of the workbench. */
  readonly workbench: string
}

/** Where builds are kept for every data folder. */
const SHARED_CACHE = path.join(ROOT, '.cache')

/** Where something can be built: in the data folder where the project cannot be written. */
function chooseCache(fallback: string): string {
  try {
    mkdirSync(SHARED_CACHE, { recursive: true })
    accessSync(SHARED_CACHE, constants.W_OK)
    return SHARED_CACHE
  } catch {
    // Installed by somebody else.
    return fallback
  }
}

/** Builds control and the workbench if they are stale, and loads what encodes its configuration. */
export async function prepareControl(
  entry: string,
  cache: string,
  tell: (line: string) => void,
): Promise<PreparedControl> {
  // Slow to load, and needed by nobody else.
  const [script, { serializeConfig }, workbench] = await Promise.all([
    bundleControl(entry, cache),
    import('miniflare'),
    findWorkbench(ROOT, SHARED_CACHE) ?? prepareWorkbench(ROOT, chooseCache(cache), tell),
  ])
  return { script, encode: serializeConfig, workbench }
}

export interface BootOptions {
  readonly prepared: PreparedControl
  readonly configuration: Configuration
  readonly folder: DataFolder
  readonly keys: Keys
  readonly port: number
  readonly listen: readonly string[]
  readonly hostSocket: string
  /** Sockets of the slots, in their order. */
  readonly slots: readonly string[]
  readonly log: Log
  /** Takes finished lines of the log. */
  readonly writeLog: (line: string) => void
  /** Told when control serves again after it had died. */
  readonly onBack: () => void
  /** Told when it does not start again at the first try. */
  readonly onTrouble: (message: string) => void
}

function describeControl(
  { configuration, keys }: BootOptions,
  { origins, hosts }: ServerNames,
): ControlConfig {
  const { mode, issuers, passed, workspace, clientAddressHeader, embedOrigins } = configuration
  return {
    ...passed,
    mode,
    issuers,
    publicOrigins: origins,
    ...(embedOrigins !== undefined && { embedOrigins }),
    hosts,
    ...(clientAddressHeader !== undefined && { clientAddressHeader }),
    // Where others come in, nobody is the user of this machine just by a file.
    ...(mode === 'local' && { localTokenSha256: keys.localTokenSha256 }),
    sleepAfterMs: SLEEP_AFTER_MS,
    alarmMs: ALARM_MS,
    maxSandboxes: MAX_SANDBOXES,
    provider: configuration.containers === undefined ? 'host' : 'container',
    workspaceMode: workspace === undefined ? 'sandboxes' : 'local',
    assetCodings: ['br', 'gzip'],
  }
}

/** Clears up after destroyed sandboxes. What cannot be is left for the next start. */
function sweepObjects({ folder, log }: BootOptions): void {
  try {
    const sandboxes = removeEmptyObjects(path.join(folder.objects, SANDBOX_OBJECTS))
    if (sandboxes > 0) log.info('empty_objects_removed', { sandboxes })
  } catch (error) {
    log.warn('empty_objects_left', { cause: describeCause(error) })
  }
}

/** Runs control. */
export async function bootControl(options: BootOptions): Promise<Workerd> {
  const { prepared, folder, keys, listen, hostSocket, slots, log, writeLog, onBack, onTrouble } = options
  const { issuers, secrets, issuerAuthorities, tls, containers } = options.configuration
  const config = describeWorkerd({
    script: prepared.script,
    control: describeControl(
      options,
      nameServer(options.configuration, { port: options.port, pageName: options.keys.pageName }),
    ),
    keys,
    secrets,
    issuerNetwork: {
      hasIssuers: issuers.length > 0,
      privateAddresses: await findPrivateAddresses(issuers),
      ...(issuerAuthorities !== undefined && { authorities: issuerAuthorities }),
    },
    ...(tls !== undefined && { tls }),
    ...(containers !== undefined && { containers }),
    listen,
    hostSocket,
    slots,
    objects: folder.objects,
    workbench: prepared.workbench,
  })
  refuseBrokenDatabases(folder.objects)
  sweepObjects(options)
  const controlLog = new ControlLog()
  const refusal = new SettingsRefusal()
  const workerd = await Workerd.start({
    program: findWorkerd(),
    config: prepared.encode(config),
    sockets: listen.length,
    onProcess: (identity) => {
      log.info('control_started', { pid: identity.pid })
      try {
        recordWorkerd(folder.workerd, identity)
      } catch (error) {
        // On a full disk serving matters more than what the next host should clear up.
        log.error('control_not_recorded', { pid: identity.pid, cause: describeCause(error) })
      }
    },
    onLine: (line) => {
      const translated = controlLog.translate(line, new Date())
      if (translated === undefined) return
      writeLog(translated)
      refusal.hear(translated)
    },
    onBack,
    onTrouble,
    log,
    nowMs: () => performance.now(),
  })
  try {
    await refusal.check(listen[0] ?? '', tls !== undefined)
    return workerd
  } catch (error) {
    await workerd.end()
    throw error
  }
}
