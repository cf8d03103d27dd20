import { homedir } from 'node:os'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { type HostApi, serveHostApi } from '../api/server.ts'
import { SignInCodes } from '../api/sign-in-codes.ts'
import type { UpFlags } from '../arguments.ts'
import { claimAll, keepClaiming } from '../claims.ts'
import type { Configuration } from '../configuration.ts'
import { bootControl, CONTROL_ENTRY } from '../control/boot.ts'
import { endOrphan, forgetWorkerd } from '../control/orphan.ts'
import { chooseAddresses } from '../control/ports.ts'
import { type DataFolder, openDataFolder } from '../data/data-folder.ts'
import { openKeys } from '../data/keys.ts'
import { DataLock } from '../data/lock.ts'
import { publishServer, serversFile } from '../data/servers-file.ts'
import { hostSocketIn, openSocketFolder } from '../data/socket-path.ts'
import { createLog, type Log } from '../log.ts'
import { LogFile } from '../log-file.ts'
import { openSandboxes, type Sandboxes } from '../open-sandboxes.ts'
import { composeWelcome } from '../welcome.ts'

const PROGRAMS = path.resolve(import.meta.dir, '../../../..')

export interface UpOptions {
  readonly configuration: Configuration
  readonly flags: UpFlags
  readonly env: Readonly<Record<string, string | undefined>>
  /** Says what is going on, to a person. */
  readonly tell: (line: string) => void
  /** Prints what was asked for. */
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

/** Makes the server known to `sbx-stdio`; false when this user has no place for that. */
function publish(url: string, folder: DataFolder, { env }: UpOptions, log: Log): boolean {
  try {
    const file = serversFile(env, env['HOME'] ?? homedir())
    publishServer(file, { url, tokenFile: folder.localToken })
    return true
  } catch (error) {
    log.warn('servers_file', { message: error instanceof Error ? error.message : 'not written' })
    return false
  }
}

function randomText(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex')
}

/** Starts everything; whatever fails undoes what was begun. */
export async function up(options: UpOptions): Promise<Running> {
  const { configuration, flags, env, tell, print } = options
  await using undo = new AsyncDisposableStack()
  const folder = openDataFolder(configuration.dataFolder)
  const lock = undo.adopt(takeLock(folder.lock), (held) => held.release())
  const logFile = new LogFile(folder.log)
  const writeLog = (line: string): void => {
    try {
      logFile.write(line)
    } catch {
      // A full disk loses lines of the log and nothing else.
    }
  }
  const log = createLog(writeLog, () => new Date())

  const orphan = await endOrphan(folder.workerd)
  if (orphan !== undefined) log.info('orphan_ended', { pid: orphan.pid })
  const { port, listen } = await chooseAddresses(configuration.addresses, configuration.port)
  const url = `http://localhost:${port}`
  const keys = await openKeys(folder, flags)

  const socketFolder = openSocketFolder(folder.root, env)
  const sandboxes: Sandboxes = await openSandboxes({ configuration, folder, socketFolder, env, tell })
  const { keeper } = sandboxes
  let stopsSandboxes = false
  undo.defer(() => keeper.close({ stop: stopsSandboxes }))
  const adopted = await keeper.adopt()
  await claimAll(keeper, log)

  const codes = new SignInCodes(() => performance.now())
  const socket = hostSocketIn(socketFolder)
  undo.adopt(
    serveHostApi({
      keeper,
      codes,
      publicUrl: url,
      socket,
      log,
      nowMs: () => performance.now(),
      mintRequestId: randomText,
    }),
    (api: HostApi) => api.close(),
  )
  const control = await bootControl({
    entry: CONTROL_ENTRY,
    configuration,
    folder,
    keys,
    port,
    listen,
    hostSocket: socket,
    log,
    writeLog,
    onBack: () => tell('Control had died and serves again'),
    onTrouble: (message) => tell(`${message}; trying again`),
  })
  undo.defer(async () => {
    await control.end()
    forgetWorkerd(folder.workerd)
  })
  lock.describe({ url, socket })
  const isPublished = publish(url, folder, options, log)
  undo.use(keepClaiming(keeper, log))
  log.info('up', { port, isolation: keeper.isolation, sandboxes: adopted.length })

  if (flags.isQuiet) print(`${url}\n`)
  else
    print(
      composeWelcome({
        url,
        signInLink: `${url}/signin#${codes.mint()}`,
        isolation: keeper.isolation,
        weaknesses: sandboxes.weaknesses,
        ...(sandboxes.notice !== undefined && { notice: sandboxes.notice }),
        adopted: adopted.length,
        ...(configuration.workspace !== undefined && { workspace: configuration.workspace }),
        ...(!isPublished && { tokenFile: folder.localToken }),
        programs: PROGRAMS,
      }),
    )

  const everything = undo.move()
  return {
    stop: async () => {
      log.info('stopping')
      control.closeDoors()
      stopsSandboxes = !flags.keepsSandboxes
      await keeper.close({ stop: stopsSandboxes })
      await everything.disposeAsync()
    },
    abandon: () => control.abandon(),
  }
}
