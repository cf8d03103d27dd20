import { accessSync, constants, mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { connect as connectSecurely } from 'node:tls'
import { SPRITES_PROBLEMS } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { Config } from 'miniflare'
import type { Configuration } from '../configuration.ts'
import type { DataFolder } from '../data/data-folder.ts'
import type { Keys } from '../data/keys.ts'
import { forgetDatabases } from '../data/manifest.ts'
import { describeCause, type Log } from '../log.ts'
import type { Machine } from '../machine.ts'
import { planServerNames, PROXY_NOTICE, type ServerNames } from './addresses.ts'
import { becomeControlUser, type ControlUser, giveAccess, InheritedFolders } from './control-user.ts'
import { bundleControl } from './bundle.ts'
import { type WatchedConnections, watchConnections } from './connection-guard.ts'
import { ControlLog } from './control-log.ts'
import type { S3Settings } from '../settings/store.ts'
import { describeServiceNetwork, findPrivateAddresses, hostsOfIssuers } from './configured-network.ts'
import { findDamagedDatabases, refuseBrokenDatabases, removeEmptyObjects } from './object-databases.ts'
import { recordWorkerd } from './orphan-workerd.ts'
import { findWorkbench, prepareWorkbench } from './workbench-files.ts'
import { type ControlConfig, type ControlPlan, describeWorkerd, SANDBOX_OBJECTS } from './workerd-config.ts'
import { gateSocket, openGates, removeStaleGates } from '../slots/gates.ts'
import { FIRST_INHERITED_FD, findWorkerd, Workerd } from './workerd.ts'

/** Idle time after which control stops a sandbox. */
const SLEEP_AFTER_MS = 600_000
/** How often control checks a running sandbox. */
const ALARM_MS = 30_000
/** Sandboxes of an account; more on a machine that can run more at once. */
const SANDBOXES_PER_ACCOUNT = 100

const ROOT = path.resolve(import.meta.dir, '../../../..')

/** The Worker's source. */
export const CONTROL_ENTRY = path.resolve(import.meta.dir, '../../../control/src/index.ts')

/** What is prepared before the port is known. */
export interface PreparedControl {
  /** The Worker as one module. */
  readonly script: string
  readonly encode: (config: Config) => Uint8Array
  /** Folder with the files of the workbench. */
  readonly workbench: string
}

/** Builds shared by all data folders. */
const SHARED_CACHE = path.join(ROOT, '.cache')

/** The shared cache, or the data folder's when the repository is read-only. */
function chooseCacheFolder(fallback: string): string {
  try {
    mkdirSync(SHARED_CACHE, { recursive: true })
    accessSync(SHARED_CACHE, constants.W_OK)
    return SHARED_CACHE
  } catch {
    // Installed by another user.
    return fallback
  }
}

/** Builds control and the workbench if they are stale, and loads the encoder of workerd's configuration. */
export async function prepareControl(
  entry: string,
  cache: string,
  notify: (line: string) => void,
): Promise<PreparedControl> {
  // Loaded here, because it is slow.
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
  /** The user that runs workerd; absent: the current one. */
  readonly user?: ControlUser
  readonly hostSocket: string
  /** Socket of the store of versions; absent: files are not saved. */
  readonly storeSocket?: string
  /** Socket of the egress proxy of containers; absent without containers. */
  readonly egressSocket?: string
  /** Sockets of the slots, in order. */
  readonly slots: readonly string[]
  /** Folder for the gates of the slots; absent with containers. */
  readonly gates?: string
  readonly machine: Machine
  readonly log: Log
  /** Writes formatted log lines. */
  readonly writeLog: (line: string) => void
  /** Called when control serves again after a crash. */
  readonly onRestarted: () => void
  /** Called when the first restart fails. */
  readonly onRestartFailed: (message: string) => void
  /** Called with what the operator should know and do, once each. */
  readonly onNotice: (line: string) => void
}

/** Control's log event for requests of a proxy whose header is not configured. */
const PROXY_EVENT = '"proxy_header_not_configured"'

/** SQLite's error codes of a damaged database in workerd's output, which does not name the file. */
const SQLITE_DAMAGED = /SQLITE_(?:CORRUPT|NOTADB)/
/** Pause between searches for damaged databases: clients can repeat the error. */
const SEARCH_PAUSE_MS = 60_000

/** Reports each notice once, however often control restarts. */
class Notices {
  readonly #report: (line: string) => void
  readonly #known = new Set<string>()

  constructor(report: (line: string) => void) {
    this.#report = report
  }

  add(line: string): void {
    if (this.#known.has(line)) return
    this.#known.add(line)
    this.#report(line)
  }
}

function s3Of({ store }: Pick<Configuration, 'store'>): S3Settings | undefined {
  return store !== undefined && 's3' in store ? store.s3 : undefined
}

function describeControl(
  { configuration, keys, machine }: BootOptions,
  { origins, privateOrigins, hosts }: ServerNames,
): ControlConfig {
  const { mode, issuers, passed, workspace, clientAddressHeader, embedOrigins, tls } = configuration
  const s3 = s3Of(configuration)
  return {
    ...passed,
    mode,
    issuers,
    publicOrigins: origins,
    ...(privateOrigins !== undefined && { privateOrigins }),
    ...(embedOrigins !== undefined && { embedOrigins }),
    hosts,
    hasTls: tls !== undefined,
    ...(clientAddressHeader !== undefined && { clientAddressHeader }),
    // In open mode the local token is not accepted.
    ...(mode === 'local' && { localTokenSha256: keys.localTokenSha256 }),
    sleepAfterMs: SLEEP_AFTER_MS,
    alarmMs: ALARM_MS,
    maxSandboxes: Math.max(SANDBOXES_PER_ACCOUNT, machine.running),
    machine: machine.facts,
    provider:
      configuration.sprites !== undefined
        ? 'sprites'
        : configuration.containers === undefined
          ? 'host'
          : 'container',
    ...(configuration.sprites !== undefined && { sprites: configuration.sprites }),
    workspaceMode: workspace === undefined ? 'sandboxes' : 'local',
    ...(s3 !== undefined && { s3 }),
    assetCodings: ['br', 'gzip'],
  }
}

/** Removes databases of destroyed sandboxes. Failures are left for the next start. */
function sweepObjects({ folder, log }: BootOptions): void {
  try {
    const sandboxes = removeEmptyObjects(path.join(folder.objects, SANDBOX_OBJECTS), (files) =>
      forgetDatabases(folder, files),
    )
    if (sandboxes > 0) log.info('empty_objects_removed', { sandboxes })
  } catch (error) {
    log.warn('empty_objects_left', { cause: describeCause(error) })
  }
}

type Networks = Pick<ControlPlan, 'issuerNetwork' | 'upstreamNetwork' | 'storeNetwork' | 'spritesNetwork'>

/** Control's network access, to what the operator configured only. */
async function describeNetworks({
  issuers,
  issuerAuthorities,
  upstreamUrls,
  store,
  sprites,
}: Configuration): Promise<Networks> {
  const s3 = s3Of({ store })
  const authorities = issuerAuthorities === undefined ? {} : { authorities: issuerAuthorities }
  const upstreamHosts = upstreamUrls.map((url) => new URL(url).hostname)
  return {
    issuerNetwork: {
      isOpen: issuers.length > 0,
      privateAddresses: await findPrivateAddresses(hostsOfIssuers(issuers)),
      ...authorities,
    },
    upstreamNetwork: {
      isOpen: upstreamUrls.length > 0,
      privateAddresses: await findPrivateAddresses(upstreamHosts),
      ...authorities,
    },
    ...(s3 !== undefined && { storeNetwork: await describeServiceNetwork(s3.endpoint) }),
    ...(sprites !== undefined && { spritesNetwork: await describeServiceNetwork(sprites.baseUrl) }),
  }
}

/** Starts control. */
export async function bootControl(options: BootOptions): Promise<Workerd> {
  const {
    prepared,
    folder,
    keys,
    user,
    listen,
    hostSocket,
    storeSocket,
    egressSocket,
    slots,
    gates,
    log,
    writeLog,
  } = options
  const { onRestarted, onRestartFailed } = options
  const { secrets, tls, containers, credentials } = options.configuration
  if (gates !== undefined) openGates(gates, user?.id)
  // As its own user, workerd cannot enter the folders above its files.
  const inherited = user === undefined ? undefined : new InheritedFolders(FIRST_INHERITED_FD)
  const paths = inherited ?? { folder: (each: string) => each, file: (each: string) => each }
  const config = describeWorkerd({
    script: prepared.script,
    control: describeControl(
      options,
      planServerNames(options.configuration, { port: options.port, pageName: options.keys.pageName }),
    ),
    keys,
    secrets,
    credentials,
    ...(await describeNetworks(options.configuration)),
    ...(tls !== undefined && { tls }),
    ...(containers !== undefined &&
      egressSocket !== undefined && { containers: { ...containers, egressSocket } }),
    listen,
    hostSocket: paths.file(hostSocket),
    ...(storeSocket !== undefined && { storeSocket: paths.file(storeSocket) }),
    slots: slots.map((socket) => paths.file(socket)),
    gates: gates === undefined ? [] : slots.map((_, slot) => paths.file(gateSocket(gates, slot))),
    objects: paths.folder(folder.objects),
    workbench: paths.folder(prepared.workbench),
  })
  refuseBrokenDatabases(folder.objects)
  sweepObjects(options)
  if (user !== undefined)
    giveAccess(user, {
      objects: folder.objects,
      hostSocket,
      ...(storeSocket !== undefined && { storeSocket }),
    })
  const controlLog = new ControlLog()
  const settingsCheck = new SettingsCheck()
  const settings = options.configuration.connections
  const nowMs = (): number => performance.now()
  const notices = new Notices(options.onNotice)
  let nextSearchMs = 0
  const nameDamagedDatabases = async (): Promise<void> => {
    if (nowMs() < nextSearchMs) return
    nextSearchMs = nowMs() + SEARCH_PAUSE_MS
    for (const file of await findDamagedDatabases(folder.objects)) {
      log.error('database_damaged', { cause: file })
      notices.add(`The database "${file}" is damaged: stop the server, and restore it from a backup`)
    }
  }
  let connections: WatchedConnections | undefined
  const workerd = await Workerd.start({
    command: [...(user === undefined ? [] : becomeControlUser(user, listen)), paths.file(findWorkerd())],
    inherited: inherited?.fds ?? [],
    config: prepared.encode(config),
    sockets: config.sockets?.length ?? 0,
    beforeLaunch: () => {
      if (gates !== undefined) removeStaleGates(gates)
    },
    onProcess: (identity) => {
      log.info('control_started', { pid: identity.pid })
      connections = watchConnections({ pid: identity.pid, port: options.port, settings, log, nowMs })
      if (connections.notice !== undefined) notices.add(connections.notice)
      try {
        recordWorkerd(folder.workerd, identity)
      } catch (error) {
        // On a full disk, serving matters more than cleanup by the next host.
        log.error('control_not_recorded', { pid: identity.pid, cause: describeCause(error) })
      }
    },
    onProcessEnd: () => connections?.[Symbol.dispose](),
    onLine: (line) => {
      if (SQLITE_DAMAGED.test(line))
        nameDamagedDatabases().catch((error: unknown) =>
          log.error('database_damaged', { cause: describeCause(error) }),
        )
      const translated = controlLog.translate(line, new Date())
      if (translated === undefined) return
      writeLog(translated)
      if (translated.includes(PROXY_EVENT)) notices.add(PROXY_NOTICE)
      settingsCheck.receiveLine(translated)
    },
    onRestarted,
    onRestartFailed,
    log,
    nowMs,
  })
  try {
    await settingsCheck.check(listen[0] ?? '', tls !== undefined)
    await checkSprites(options.configuration, listen[0] ?? '', tls !== undefined)
    return workerd
  } catch (error) {
    await workerd.end()
    throw error
  }
}

/** Control that does not answer within this time is busy, not misconfigured. */
const ANSWER_MS = 10_000
/** Time for the log line, which may arrive after the response. */
const LOG_MS = 1_000
const SERVER_ERROR = /^HTTP\/1\.1 5\d\d /

/** True when a response has its head and the length of its body. */
function isWhole(response: string): boolean {
  const end = response.indexOf('\r\n\r\n')
  const [, length = '0'] = /\r\ncontent-length: ([0-9]+)\r\n/i.exec(response) ?? []
  return end >= 0 && response.length >= end + 4 + Number(length)
}

/** The head and body of a response of control; undefined without one. Uses a plain socket, because `fetch` honors proxy variables. */
async function requestControl(address: string, isSecure: boolean, path: string): Promise<string | undefined> {
  const { hostname, port } = new URL(`http://${address}`)
  const target = { host: hostname.replaceAll(/[[\]]/g, ''), port: Number(port) }
  const { promise, resolve } = Promise.withResolvers<void>()
  // A request to itself; nothing secret is sent.
  const socket = isSecure ? connectSecurely({ ...target, rejectUnauthorized: false }) : connect(target)
  const timer = setTimeout(resolve, ANSWER_MS)
  let received = ''
  socket.on('data', (bytes: Buffer) => {
    received += bytes.toString('latin1')
    if (isWhole(received)) resolve()
  })
  for (const event of ['error', 'close'] as const) socket.on(event, () => resolve())
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${address}\r\nConnection: close\r\n\r\n`)
  await promise
  clearTimeout(timer)
  socket.destroy()
  return received === '' ? undefined : received
}

/** Throws why sprites cannot be used, as control reports it. Control that does not say is not asked again. */
async function checkSprites({ sprites }: Configuration, address: string, isSecure: boolean): Promise<void> {
  if (sprites === undefined) return
  const response = await requestControl(address, isSecure, '/readyz')
  const [, reason = ''] = /"reason":"([a-z_]{1,32})"/.exec(response ?? '') ?? []
  const text = new Map<string, string>(Object.entries(SPRITES_PROBLEMS)).get(reason)
  if (text !== undefined) throw new SandwireError('provider_unavailable', `Cannot use Sprites: ${text}`)
}

/** Detects that control rejects its settings, which it reports only in its log. */
class SettingsCheck {
  readonly #cause = Promise.withResolvers<string>()

  /** Receives every line of control's log. */
  receiveLine(line: string): void {
    if (!line.includes('"settings_invalid"')) return
    const { event, cause } = JSON.parse(line) as Readonly<Record<string, unknown>>
    if (event === 'settings_invalid') this.#cause.resolve(String(cause))
  }

  /** Throws when control rejects its settings; it would otherwise seem to have started. */
  async check(address: string, isSecure: boolean): Promise<void> {
    const response = await requestControl(address, isSecure, '/healthz')
    if (response === undefined || !SERVER_ERROR.test(response)) return
    const late = new Promise<undefined>((resolve) => {
      setTimeout(() => resolve(undefined), LOG_MS).unref()
    })
    const cause = await Promise.race([this.#cause.promise, late])
    // Other errors are temporary or in the log.
    if (cause === undefined) return
    throw new SandwireError('bad_request', `Cannot run control: ${cause.replace(/^Error: /, '')}`)
  }
}
