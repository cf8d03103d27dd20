import { homedir } from 'node:os'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { signInLink } from '../api/routes.ts'
import { type HostApi, serveHostApi } from '../api/server.ts'
import { SignInCodes } from '../api/sign-in-codes.ts'
import type { UpFlags } from '../arguments.ts'
import type { Configuration } from '../configuration.ts'
import { chooseAddresses, planServerNames } from '../control/addresses.ts'
import { bootControl, CONTROL_ENTRY, prepareControl, type PreparedControl } from '../control/boot.ts'
import { endOrphanedWorkerd, removeWorkerdRecord } from '../control/orphan-workerd.ts'
import type { Workerd } from '../control/workerd.ts'
import { claimFormat, type DataFolder, openDataFolder } from '../data/data-folder.ts'
import { toFolderError } from '../data/folder-problem.ts'
import { type Keys, openKeys } from '../data/keys.ts'
import { DataLock } from '../data/lock.ts'
import { removeTemporaryFiles } from '../data/private-file.ts'
import { publishServer, serversFile, withdrawServer } from '../data/servers-file.ts'
import { hostSocketIn, openSocketFolder, removeIfEmpty } from '../data/socket-path.ts'
import { createLog, describeCause, type Log, LogFile } from '../log.ts'
import { openSandboxes, type Sandboxes } from '../open-sandboxes.ts'
import { startClaimTimer } from '../sandboxes/claim-sandboxes.ts'
import { listIdentities } from '../settings/identity.ts'
import { formatStartMessage, type StartMessageFacts } from '../start-message.ts'

const PROGRAMS = path.resolve(import.meta.dir, '../../../..')

export interface UpOptions {
  readonly configuration: Configuration
  readonly flags: UpFlags
  readonly env: Readonly<Record<string, string | undefined>>
  /** Says what is going on, to a person. */
  readonly notify: (line: string) => void
  /** Prints what was stopRequested for. */
  readonly print: (text: string) => void
}

/** A Sandwire that runs. */
export interface Running {
  /** Ends everything in order: the public port, the sandboxes unless they are kept, control, the lock. */
  stop(): Promise<void>
  /** Ends control at once; the sandboxes are left to their supervisors. */
  abandon(): void
}

function takeLock(file: string): DataLock {
  const outcome = DataLock.take(file)
  if (outcome.kind === 'taken') return outcome.lock
  const { holder } = outcome
  const who = holder === undefined ? 'another Sandwire' : `the Sandwire with process id ${holder.pid}`
  const where = holder?.url === undefined ? '' : `, at ${holder.url}`
  throw new SandwireError(
    'conflict',
    `Cannot use "${path.dirname(file)}": ${who} uses it${where}\nhint: stop it, or choose another folder with --data`,
  )
}

/** Makes the server known to `sbx-stdio` for as long as it runs; false when this user has no place for that. */
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
    // Whoever reads the list sees from the lock that this host has ended.
    log.warn('servers_file', { message: describeCause(error) })
  }
}

function randomText(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex')
}

/** What everything else stands on. */
interface Base {
  readonly folder: DataFolder
  readonly lock: DataLock
  readonly log: Log
  readonly writeLog: (line: string) => void
  /** Private folder whose path is short enough for sockets in it. */
  readonly socketFolder: string
}

/** Takes the data folder, and clears up after a host that died with it. */
async function takeDataFolder({ configuration, env }: UpOptions, undo: AsyncDisposableStack): Promise<Base> {
  const folder = openDataFolder(configuration.dataFolder)
  const lock = undo.adopt(takeLock(folder.lock), (held) => held.release())
  claimFormat(folder)
  for (const each of [folder.root, folder.keys, folder.cache]) removeTemporaryFiles(each)
  const logFile = new LogFile(folder.log)
  const writeLog = (line: string): void => {
    try {
      logFile.write(line)
    } catch {
      // A full disk loses lines of the log and nothing else.
    }
  }
  const log = createLog(writeLog, () => new Date())
  const orphan = await endOrphanedWorkerd(folder.workerd)
  if (orphan !== undefined) log.info('orphan_ended', { pid: orphan.pid })
  const socketFolder = undo.adopt(openSocketFolder(folder.root, env), removeIfEmpty)
  return { folder, lock, log, writeLog, socketFolder }
}

/** What runs once control serves. */
interface Served {
  /** The address to show. */
  readonly url: string
  /** Every address under which it answers. */
  readonly urls: readonly string[]
  readonly signInLink: string
  /** `HOST:PORT` of every public socket. */
  readonly listen: readonly string[]
  readonly api: HostApi
  readonly control: Workerd
}

/** Chooses the port and runs control and the host API behind it. */
async function serve(
  base: Base,
  { configuration, notify }: UpOptions,
  parts: { readonly keys: Keys; readonly sandboxes: Sandboxes; readonly prepared: PreparedControl },
  undo: AsyncDisposableStack,
): Promise<Served> {
  const { folder, log, writeLog } = base
  const { keys, sandboxes, prepared } = parts
  const { manager, engine, slots } = sandboxes
  // A free port is chosen as late as can be: nobody holds it until control does.
  const { port, listen } = await chooseAddresses(configuration.addresses, configuration.port)
  const { url, pageUrl } = planServerNames(configuration, { port, pageName: keys.pageName })
  const nowMs = (): number => performance.now()
  const codes = configuration.mode === 'local' ? new SignInCodes(nowMs) : undefined
  const socket = hostSocketIn(base.socketFolder)
  const options = {
    ...(manager !== undefined && { manager }),
    ...(engine !== undefined && { engine }),
    publicUrl: pageUrl,
    socket,
    log,
    nowMs,
    mintRequestId: randomText,
    ...(codes !== undefined && { codes }),
  }
  const api = undo.adopt(serveHostApi(options), (served) => served.close())
  const control = await bootControl({
    prepared,
    configuration,
    folder,
    keys,
    port,
    listen,
    hostSocket: socket,
    slots,
    log,
    writeLog,
    onRestarted: () => notify('Control had died and serves again'),
    onRestartFailed: (message) => notify(`${message}; trying again`),
  })
  undo.defer(async () => {
    await control.end()
    removeWorkerdRecord(folder.workerd)
  })
  base.lock.describe({ url, socket })
  const scheme = configuration.tls === undefined ? 'http' : 'https'
  // Only where it does listen: whoever listened elsewhere would be sent the token.
  const urls = [
    ...new Set([url, `${scheme}://localhost:${port}`, ...listen.map((address) => `${scheme}://${address}`)]),
  ]
  return { url, urls, listen, signInLink: signInLink(pageUrl, codes), api, control }
}

/** Starts everything; whatever fails undoes what was begun. A data folder that cannot be used is named. */
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
  // A port that is taken is told before anything slow is done.
  await chooseAddresses(configuration.addresses, configuration.port)
  const preparing = prepareControl(CONTROL_ENTRY, folder.cache, notify)
  // It is awaited below; should something else fail first, that is what is told.
  preparing.catch(() => undefined)
  const keys = await openKeys(folder, flags)
  // Control starts after the sandboxes were found, and is what connects to them.
  const late: { control?: Workerd } = {}
  const closeConnections = (exceptPids: ReadonlySet<number>): void =>
    late.control?.closeSandboxConnections(exceptPids)
  const sandboxes = await openSandboxes({ ...base, configuration, env, closeConnections, notify })
  const { manager } = sandboxes
  const adopted = await sandboxes.adopt()
  const served = await serve(base, options, { keys, sandboxes, prepared: await preparing }, undo)
  late.control = served.control
  if (manager !== undefined) undo.use(startClaimTimer(manager, log))
  // Where the local token is accepted, programs of this user find it.
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
    programs: PROGRAMS,
    ...(configuration.workspace !== undefined && { workspace: configuration.workspace }),
    ...(!isFindable && { tokenFile: folder.localToken }),
  }
  print(flags.isQuiet ? `${served.url}\n` : formatStartMessage(facts))

  const everything = undo.move()
  return {
    stop: async () => {
      log.info('stopping')
      // A workerd that ends in order takes its containers along.
      if (flags.keepsSandboxes && sandboxes.isolation === 'container') served.control.abandon()
      else served.control.stopListening()
      // From here on nobody starts another sandbox.
      await served.api.close()
      await sandboxes.close({ stop: !flags.keepsSandboxes })
      await everything.disposeAsync()
    },
    abandon: () => served.control.abandon(),
  }
}
