import { homedir } from 'node:os'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { AgentInstaller } from '../agents/agent-installer.ts'
import { agentSources } from './agents.ts'
import { signInLink } from '../api/routes.ts'
import { type HostApi, serveHostApi } from '../api/server.ts'
import { type Backup, makeBackup } from '../backup/backup.ts'
import { openBackupStore } from '../backup/backup-store.ts'
import { scheduleBackups } from '../backup/scheduled-backups.ts'
import { SignInCodes } from '../api/sign-in-codes.ts'
import type { UpFlags } from '../arguments.ts'
import type { Configuration } from '../configuration.ts'
import { chooseAddresses, isBehindProxy, planServerNames, PROXY_NOTICE } from '../control/addresses.ts'
import { bootControl, CONTROL_ENTRY, prepareControl, type PreparedControl } from '../control/boot.ts'
import { checkpointDatabases } from '../control/object-databases.ts'
import { endOrphanedWorkerd, removeWorkerdRecord } from '../control/orphan-workerd.ts'
import { claimControlUser, type ControlUser, findControlUserProblem } from '../control/control-user.ts'
import { findWorkerd, type Workerd } from '../control/workerd.ts'
import { claimFormat, type DataFolder, openDataFolder } from '../data/data-folder.ts'
import { claimIdentity, findOriginal } from '../data/folder-identity.ts'
import { toFolderError } from '../data/folder-problem.ts'
import { type Keys, openKeys } from '../data/keys.ts'
import { DataLock } from '../data/lock.ts'
import { keepManifest, type ManifestKeeper, requireContent, requireStore } from '../data/manifest.ts'
import { removeTemporaryFiles } from '../data/private-file.ts'
import { publishServer, serversFile, withdrawServer } from '../data/servers-file.ts'
import { hostSocketIn, openSocketFolder, removeIfEmpty, storeSocketIn } from '../data/socket-path.ts'
import { DiskGuard } from '../disk/disk-guard.ts'
import { foldersOf } from '../isolation/sandbox-folders.ts'
import { createLog, describeCause, type Log, LogFile } from '../log.ts'
import { type Machine, readMachine } from '../machine.ts'
import { openSandboxes, type Sandboxes } from '../open-sandboxes.ts'
import { startClaimTimer } from '../sandboxes/claim-sandboxes.ts'
import { listRunning } from '../sandboxes/sandbox-status.ts'
import { listIdentities } from '../settings/identity.ts'
import { formatStartMessage, type StartMessageFacts } from '../start-message.ts'
import { FolderStore } from '../store/folder-store.ts'
import { serveStore } from '../store/store-server.ts'

const PROGRAMS = path.resolve(import.meta.dir, '../../../..')

export interface UpOptions {
  readonly configuration: Configuration
  readonly flags: UpFlags
  readonly env: Readonly<Record<string, string | undefined>>
  /** Prints a progress line to stderr. */
  readonly notify: (line: string) => void
  /** Prints the result to stdout. */
  readonly print: (text: string) => void
}

/** A running installation. */
export interface Running {
  /** Stops everything in order: the public port, the sandboxes unless they keep running, control, the lock. */
  stop(): Promise<void>
  /** Kills control without waiting; sandboxes stay with their supervisors. */
  abandon(): void
}

function takeLock(file: string, isCopy: boolean): DataLock {
  const outcome = DataLock.take(file, { isCopy })
  if (outcome.kind === 'taken') return outcome.lock
  const { holder } = outcome
  const who = holder === undefined ? 'another Sandwire' : `the Sandwire process ${holder.pid}`
  const where = holder?.url === undefined ? '' : `, at ${holder.url}`
  throw new SandwireError(
    'conflict',
    `Cannot use "${path.dirname(file)}": in use by ${who}${where}\nhint: stop it, or choose another folder with --data`,
  )
}

/** Registers the server for `sbx-stdio` while it runs; false when the list cannot be written. */
function publish(
  urls: readonly string[],
  { folder, log }: Base,
  { env }: UpOptions,
  undo: AsyncDisposableStack,
): boolean {
  const file = serversFile(env, env['HOME'] ?? homedir())
  const tokenFile = folder.localToken
  try {
    publishServer(file, { urls, tokenFile })
    undo.defer(() => withdraw(file, tokenFile, log))
    return true
  } catch (error) {
    log.warn('servers_file', { message: describeCause(error) })
    return false
  }
}

function withdraw(file: string, tokenFile: string, log: Log): void {
  try {
    withdrawServer(file, tokenFile)
  } catch (error) {
    // Readers of the list notice by the lock that this host has ended.
    log.warn('servers_file', { message: describeCause(error) })
  }
}

/** Calls a function when its value is first needed. */
function once<T>(create: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: create() }).value
}

function randomText(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex')
}

/** The locked data folder and its log. */
interface Base {
  readonly folder: DataFolder
  readonly lock: DataLock
  readonly log: Log
  readonly writeLog: (line: string) => void
  /** Private folder with a path short enough for unix sockets. */
  readonly socketFolder: string
}

/** Locks the data folder and cleans up after a host that crashed. */
async function takeDataFolder(
  { configuration, env, notify }: UpOptions,
  undo: AsyncDisposableStack,
): Promise<Base> {
  const folder = openDataFolder(configuration.dataFolder)
  const original = findOriginal(folder)
  const lock = undo.adopt(takeLock(folder.lock, original !== undefined), (held) => held.release())
  claimFormat(folder)
  claimIdentity(folder)
  if (original !== undefined)
    notify(
      `This data folder is a copy of "${original}", with the same keys, tokens and sign-ins. Its sandboxes are stopped; those of the original are left alone`,
    )
  for (const each of [folder.root, folder.keys, folder.cache]) removeTemporaryFiles(each)
  const logFile = new LogFile(folder.log)
  const writeLog = (line: string): void => {
    try {
      logFile.write(line)
    } catch {
      // On a full disk only log lines are lost.
    }
  }
  const log = createLog(writeLog, () => new Date())
  const orphan = await endOrphanedWorkerd(folder.workerd)
  if (orphan !== undefined) log.info('orphan_ended', { pid: orphan.pid })
  const socketFolder = undo.adopt(openSocketFolder(folder.root, env), removeIfEmpty)
  return { folder, lock, log, writeLog, socketFolder }
}

/** Holds space back for control. */
function openDiskGuard({ folder, log }: Base, { disk }: Configuration, hasImages: boolean): DiskGuard {
  return new DiskGuard({
    dataFolder: folder.root,
    reserveFile: folder.reserve,
    settings: disk,
    hasImages,
    // The folder for sockets plays no part in the path of an image.
    imageOf: (id) => foldersOf({ dataFolder: folder.root, runBase: '/' }, id).image,
    listRunning: () => listRunning(folder.sandboxes),
    log,
  })
}

/** Serves the folder of versions; returns its socket, or undefined when there is none. */
async function openStore(
  { socketFolder, log }: Base,
  { store: settings }: Configuration,
  disk: DiskGuard,
  undo: AsyncDisposableStack,
): Promise<string | undefined> {
  if (settings === undefined || !('folder' in settings)) return undefined
  const store = new FolderStore(settings.folder)
  await store.open()
  const socket = storeSocketIn(socketFolder)
  const { folder } = settings
  const admit = (sizeBytes: number): void => disk.admitFile(folder, sizeBytes)
  undo.adopt(serveStore({ socket, store, folder, admit, log }), (served) => served.close())
  return socket
}

/** Copies control's own data to the store of versions on a schedule. */
function startBackups(
  { folder, log }: Base,
  { store: settings, secrets, backupHours }: Configuration,
  undo: AsyncDisposableStack,
): void {
  const store = openBackupStore(settings, secrets)
  if (store === undefined || backupHours === 0) return
  const nowMs = Date.now
  const make = (): Promise<Backup> => makeBackup(folder.root, nowMs())
  undo.use(scheduleBackups({ store, everyMs: backupHours * 3_600_000, make, nowMs, log }))
}

/** Makes a plain copy of the database files whole. */
function checkpoint({ folder, log }: Base): void {
  try {
    checkpointDatabases(folder.objects)
  } catch (error) {
    // SQLite reads the logs at the next start.
    log.warn('checkpoint_failed', { cause: describeCause(error) })
  }
}

/** What is running once control serves. */
interface Served {
  /** The URL to print. */
  readonly url: string
  /** Every URL it answers to. */
  readonly urls: readonly string[]
  readonly signInLink: string
  /** `HOST:PORT` of every public socket. */
  readonly listen: readonly string[]
  readonly api: HostApi
  readonly control: Workerd
}

/** Chooses the port, then starts the host API and control. */
async function serve(
  base: Base,
  { configuration, env, notify }: UpOptions,
  parts: {
    readonly keys: Keys
    readonly manifest: ManifestKeeper
    readonly sandboxes: Sandboxes
    readonly machine: Machine
    readonly prepared: PreparedControl
    readonly user: ControlUser | undefined
  },
  undo: AsyncDisposableStack,
): Promise<Served> {
  const { folder, log, writeLog } = base
  const { keys, manifest, sandboxes, machine, prepared, user } = parts
  const { manager, engine, egressSocket, disk, slots, gates } = sandboxes
  // As late as possible: the port is not reserved until control listens on it.
  const { port, listen } = await chooseAddresses(configuration.addresses, configuration.port)
  const { url, pageUrl } = planServerNames(configuration, { port, pageName: keys.pageName })
  const nowMs = (): number => performance.now()
  const codes = configuration.mode === 'local' ? new SignInCodes(nowMs) : undefined
  const socket = hostSocketIn(base.socketFolder)
  const options = {
    ...(manager !== undefined && { manager }),
    ...(engine !== undefined && { engine }),
    disk,
    ...(manager !== undefined && {
      agents: new AgentInstaller(
        once(() => agentSources(folder.root, env)),
        notify,
      ),
    }),
    publicUrl: pageUrl,
    socket,
    dataFolder: folder.root,
    log,
    nowMs,
    mintRequestId: randomText,
    ...(codes !== undefined && { codes }),
  }
  const api = undo.adopt(serveHostApi(options), (served) => served.close())
  const storeSocket = await openStore(base, configuration, disk, undo)
  const control = await bootControl({
    prepared,
    configuration,
    folder,
    keys,
    port,
    listen,
    ...(user !== undefined && { user }),
    hostSocket: socket,
    ...(storeSocket !== undefined && { storeSocket }),
    ...(egressSocket !== undefined && { egressSocket }),
    slots,
    ...(gates !== undefined && { gates }),
    machine,
    log,
    writeLog,
    onRestarted: () => notify('Control crashed and was restarted'),
    onRestartFailed: (message) => notify(`${message}; retrying`),
    onNotice: notify,
  })
  manifest.started()
  undo.defer(async () => {
    manifest.stop()
    await control.end()
    removeWorkerdRecord(folder.workerd)
    checkpoint(base)
  })
  startBackups(base, configuration, undo)
  if (configuration.clientAddressHeader === undefined && isBehindProxy(configuration, port))
    notify(PROXY_NOTICE)
  base.lock.describe({ url, socket })
  const scheme = configuration.tls === undefined ? 'http' : 'https'
  // Only addresses it listens on: the token would otherwise be sent to another server.
  const urls = [
    ...new Set([url, `${scheme}://localhost:${port}`, ...listen.map((address) => `${scheme}://${address}`)]),
  ]
  return { url, urls, listen, signInLink: signInLink(pageUrl, codes), api, control }
}

/** The user that runs workerd; undefined where it can only be the current one. */
function checkControlUser(
  user: ControlUser | undefined,
  { workbench }: PreparedControl,
  notify: (line: string) => void,
): ControlUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  const problem = findControlUserProblem(user, findWorkerd(), workbench)
  if (problem !== undefined) notify(`Control runs as root: ${problem}`)
  return problem === undefined ? user : undefined
}

/** Starts everything; a failure undoes the steps before it. An unusable data folder is named in the error. */
export async function up(options: UpOptions): Promise<Running> {
  try {
    return await begin(options)
  } catch (error) {
    throw toFolderError(error, options.configuration.dataFolder)
  }
}

async function begin(options: UpOptions): Promise<Running> {
  const { configuration, flags, env, notify, print } = options
  await using undo = new AsyncDisposableStack()
  const base = await takeDataFolder(options, undo)
  const { folder, log } = base
  // Reports a port in use before anything slow starts.
  await chooseAddresses(configuration.addresses, configuration.port)
  const preparing = prepareControl(CONTROL_ENTRY, folder.cache, notify)
  // Awaited below; if another step fails first, its error is reported instead.
  preparing.catch(() => undefined)
  const orphans = requireContent(folder, {
    ...flags,
    hasSandboxes: configuration.containers === undefined && configuration.sprites === undefined,
  })
  if (configuration.store !== undefined && 'folder' in configuration.store)
    requireStore(folder, configuration.store.folder, flags)
  const keys = await openKeys(folder, flags)
  const manifest = undo.use(keepManifest(folder, log))
  // Control starts after running sandboxes were found, and connects to them.
  const late: { control?: Workerd } = {}
  const closeConnections = (exceptPids: ReadonlySet<number>): void =>
    late.control?.closeSandboxConnections(exceptPids)
  const openDisk = (hasImages: boolean): DiskGuard => undo.use(openDiskGuard(base, configuration, hasImages))
  const workerdPid = (): number | undefined => late.control?.pid
  // With containers it needs the engine, and access to that is as good as root.
  const user = configuration.containers === undefined ? claimControlUser(folder.root) : undefined
  const machine = readMachine(configuration, folder.root)
  const sandboxes = await openSandboxes({
    ...base,
    configuration,
    machine,
    env,
    ...(user !== undefined && { controlGroup: user.id }),
    closeConnections,
    workerdPid,
    openDisk,
    notify,
  })
  const { manager } = sandboxes
  // Control does not know them, so that it would never stop them.
  if (manager !== undefined) await Promise.allSettled(orphans.map((id) => manager.stop(id)))
  const adopted = await sandboxes.adopt()
  const prepared = await preparing
  const runsAs = configuration.containers === undefined ? checkControlUser(user, prepared, notify) : undefined
  const parts = { keys, manifest, sandboxes, machine, prepared, user: runsAs }
  const served = await serve(base, options, parts, undo)
  late.control = served.control
  if (manager !== undefined) undo.use(startClaimTimer(manager, log))
  // The local token is published only where it is accepted.
  const isFindable = configuration.mode === 'open' || publish(served.urls, base, options, undo)
  log.info('up', { isolation: sandboxes.isolation, sandboxes: adopted })
  const facts: StartMessageFacts = {
    ...sandboxes,
    url: served.url,
    signInLink: served.signInLink,
    mode: configuration.mode,
    listen: served.listen,
    hasTls: configuration.tls !== undefined,
    identities: listIdentities(configuration),
    isRoot: process.getuid?.() === 0,
    adopted,
    keepsSandboxes: flags.keepsSandboxes,
    savesFiles: configuration.store !== undefined,
    programs: PROGRAMS,
    ...(configuration.workspace !== undefined && { workspace: configuration.workspace }),
    ...(!isFindable && { tokenFile: folder.localToken }),
  }
  print(flags.isQuiet ? `${served.url}\n` : formatStartMessage(facts))

  const everything = undo.move()
  return {
    stop: async () => {
      log.info('stopping')
      // workerd stops its containers when it exits normally, but not when it is killed.
      if (!flags.keepsSandboxes) await sandboxes.stopWithControl?.()
      else if (sandboxes.isolation === 'container') served.control.abandon()
      served.control.stopListening()
      // No sandbox starts after this.
      await served.api.close()
      await sandboxes.close({ stop: !flags.keepsSandboxes })
      await everything.disposeAsync()
    },
    abandon: () => served.control.abandon(),
  }
}
