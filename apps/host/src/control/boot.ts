import { accessSync, constants, mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { connect as connectSecurely } from 'node:tls'
import { SandwireError } from '@sandwire/protocol'
import type { Config } from 'miniflare'
import type { Configuration } from '../configuration.ts'
import type { DataFolder } from '../data/data-folder.ts'
import type { Keys } from '../data/keys.ts'
import { describeCause, type Log } from '../log.ts'
import { planServerNames, type ServerNames } from './addresses.ts'
import { bundleControl } from './bundle.ts'
import { ControlLog } from './control-log.ts'
import { findPrivateAddresses } from './issuer-network.ts'
import { refuseBrokenDatabases, removeEmptyObjects } from './object-databases.ts'
import { recordWorkerd } from './orphan-workerd.ts'
import { findWorkbench, prepareWorkbench } from './workbench-files.ts'
import { type ControlConfig, describeWorkerd, SANDBOX_OBJECTS } from './workerd-config.ts'
import { findWorkerd, Workerd } from './workerd.ts'

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
function chooseCacheFolder(fallback: string): string {
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
  notify: (line: string) => void,
): Promise<PreparedControl> {
  // Slow to load, and needed by nobody else.
  const [script, { serializeConfig }, workbench] = await Promise.all([
    bundleControl(entry, cache),
    import('miniflare'),
    findWorkbench(ROOT, SHARED_CACHE) ?? prepareWorkbench(ROOT, chooseCacheFolder(cache), notify),
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
  readonly onRestarted: () => void
  /** Told when it does not start again at the first try. */
  readonly onRestartFailed: (message: string) => void
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
  const { prepared, folder, keys, listen, hostSocket, slots, log, writeLog, onRestarted, onRestartFailed } =
    options
  const { issuers, secrets, issuerAuthorities, tls, containers } = options.configuration
  const config = describeWorkerd({
    script: prepared.script,
    control: describeControl(
      options,
      planServerNames(options.configuration, { port: options.port, pageName: options.keys.pageName }),
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
  const refusal = new SettingsCheck()
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
    onRestarted,
    onRestartFailed,
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

/** Control that does not answer in this time is busy, not misconfigured. */
const ANSWER_MS = 10_000
/** Its log and its answer come by different ways. */
const LOG_MS = 1_000
const SERVER_ERROR = /^HTTP\/1\.1 5\d\d /

/** First line of the answer to a request for its health; undefined when there is none. Asked by hand: no proxy of the environment is. */
async function requestHealth(address: string, isSecure: boolean): Promise<string | undefined> {
  const { hostname, port } = new URL(`http://${address}`)
  const target = { host: hostname.replaceAll(/[[\]]/g, ''), port: Number(port) }
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  // It asks itself over loopback, and believes nothing of the answer but that there is one.
  const socket = isSecure ? connectSecurely({ ...target, rejectUnauthorized: false }) : connect(target)
  const timer = setTimeout(() => resolve(undefined), ANSWER_MS)
  let heard = ''
  socket.on('data', (bytes: Buffer) => {
    heard += bytes.toString('latin1')
    if (heard.includes('\r\n')) resolve(heard.slice(0, heard.indexOf('\r\n')))
  })
  for (const event of ['error', 'close'] as const) socket.on(event, () => resolve(undefined))
  socket.write(`GET /healthz HTTP/1.1\r\nHost: ${address}\r\nConnection: close\r\n\r\n`)
  const line = await promise
  clearTimeout(timer)
  socket.destroy()
  return line
}

/** Why control takes none of its settings, which it says in its log alone: it serves nothing then. */
export class SettingsCheck {
  readonly #cause = Promise.withResolvers<string>()

  /** Hears every finished line of control's log. */
  hear(line: string): void {
    if (!line.includes('"settings_refused"')) return
    const { event, cause } = JSON.parse(line) as Readonly<Record<string, unknown>>
    if (event === 'settings_refused') this.#cause.resolve(String(cause))
  }

  /** Throws when control answers nothing because of its settings: it would look as if it had started. */
  async check(address: string, isSecure: boolean): Promise<void> {
    const line = await requestHealth(address, isSecure)
    if (line === undefined || !SERVER_ERROR.test(line)) return
    const late = new Promise<undefined>((resolve) => {
      setTimeout(() => resolve(undefined), LOG_MS).unref()
    })
    const cause = await Promise.race([this.#cause.promise, late])
    // Anything else that is wrong passes, or is for the log: who can use what works should.
    if (cause === undefined) return
    throw new SandwireError('bad_request', `Cannot run control: ${cause.replace(/^Error: /, '')}`)
  }
}
