import { openSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { encodeId, GATEWAY_PORT } from '@sandwire/internal-api'
import { SOFTWARE_VERSION, type StopReason } from '@sandwire/protocol'
import { AgentRegistry } from './agents/agent-registry.ts'
import { RELAY_COMMAND, relay } from './agents/terminals/relay.ts'
import { createBaseEnv, readAccount, takeEnvFile } from './process-env.ts'
import { type Arguments, HELP, parseArguments } from './arguments.ts'
import { awaitClosingConnections } from './closing-connections.ts'
import { openCredential } from './credential.ts'
import { forwardPort, PROXY_ENV, PROXY_PORT } from './forward-port.ts'
import type { Credential } from './http/request-guard.ts'
import { createLog, type Log } from './log.ts'
import { forbidDumps } from './processes/linux/process-calls.ts'
import { OrphanReaper } from './processes/tree/orphan-reaper.ts'
import { SAME_USER, createUserContext, type RunAs, type UserContext } from './processes/run-as.ts'
import { ProcessScanner } from './processes/tree/process-scanner.ts'
import { openOomScore } from './processes/tree/oom-score.ts'
import { createStartProcess } from './processes/start-process.ts'
import { listen, type ListenAddress, type ServerDependencies } from './server.ts'
import { ScreenModel } from './screen/screen-model.ts'
import { ScreenRenderer } from './screen/screen-renderer.ts'
import { SessionRegistry } from './sessions/session-registry.ts'
import type { Settings } from './settings.ts'
import { planShutdown } from './shutdown-plan.ts'
import { readStopReason } from './stop-reason.ts'
import { clearSocketPath, listenPrivately } from './unix-socket.ts'
import { GitScratch } from './workspace/git/private-config.ts'
import { createRunTool } from './workspace/tool.ts'
import { Semaphore } from './workspace/semaphore.ts'
import { RESPONSE_MEMORY } from './workspace/routes/listing-response.ts'
import { ARCHIVE_LIMITS } from './workspace/routes/transfer-routes.ts'
import { FilesThread } from './workspace/thread/files-thread.ts'
import { WorkerClient } from './workspace/thread/worker-client.ts'
import { findRipgrep } from './workspace/search/find-ripgrep.ts'
import { Uploads } from './workspace/transfer/uploads.ts'
import { TmuxService } from './tmux/tmux-service.ts'
import { pauseProcesses } from './versions/pause-processes.ts'
import { VersionService } from './versions/version-service.ts'
import type { VersionThread } from './versions/messages.ts'
import { WatchService } from './workspace/watch/watch-service.ts'

function fail(message: string, hint: string): never {
  process.stderr.write(`sandboxd: ${message}\nhint: ${hint}\n`)
  process.exit(2)
}

function findWorkspace(directory: string): string {
  try {
    const real = realpathSync(directory)
    if (statSync(real).isDirectory()) return real
  } catch {
    // Reported below, as when the path is a file.
  }
  return fail(
    `cannot use workspace "${directory}": no such folder`,
    'give an existing folder with --workspace DIR',
  )
}

/** Listens, or exits with one line that says why it cannot. */
async function open(address: ListenAddress, deps: ServerDependencies): Promise<ReturnType<typeof listen>> {
  const where = address.kind === 'unix' ? address.path : `${address.hostname}:${address.port}`
  const problem = address.kind === 'unix' ? await clearSocketPath(address.path) : undefined
  if (problem !== undefined)
    fail(`cannot listen on "${where}": ${problem}`, 'choose another address with --listen')
  try {
    return listenPrivately(() => listen(address, deps))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'failed'
    return fail(
      `cannot listen on "${where}": ${code}`,
      'choose another address with --listen, or port 0 for a free one',
    )
  }
}

function findUser(runAs: RunAs | undefined): UserContext {
  if (runAs === undefined) return SAME_USER
  const found = createUserContext(runAs)
  if (!('problem' in found)) return found
  return fail(
    `cannot run processes as ${runAs.uid}:${runAs.gid}: ${found.problem}`,
    'install util-linux, and give sandboxd CAP_SETUID, CAP_SETGID, CAP_SETPCAP and CAP_KILL',
  )
}

/** Opens the proxy port; returns the variables that name it. */
async function openProxy(
  socketPath: string | undefined,
  log: Log,
): Promise<Readonly<Record<string, string>>> {
  if (socketPath === undefined) return {}
  const forward = await forwardPort({ port: PROXY_PORT, socketPath, name: 'proxy' }, log)
  return forward === undefined ? {} : PROXY_ENV
}

/** The environment of every process: inherited variables, the proxy's, and the operator's. */
async function composeEnv(
  { runAs, envFile, proxySocket }: Extract<Arguments, { kind: 'run' }>,
  log: Log,
): Promise<Readonly<Record<string, string>>> {
  const account = readAccount(runAs?.uid ?? process.getuid?.() ?? 0)
  const added = envFile === undefined ? undefined : takeEnvFile(envFile)
  if (added?.isOk === false) return fail(added.message, 'write a JSON object into a regular file')
  return {
    ...createBaseEnv(process.env, account, runAs !== undefined),
    ...(await openProxy(proxySocket, log)),
    ...added?.env,
  }
}

function randomText(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex')
}

/** An id for a session that control did not name, such as one that an agent opens. Control knows only ids that name the sandbox. */
function mintSessionId(credential: Credential): string {
  const random = crypto.getRandomValues(new Uint8Array(16))
  return credential.kind === 'token' ? `${credential.sandbox}.${encodeId(random)}` : random.toHex()
}

async function main(): Promise<void> {
  if (process.argv[2] === RELAY_COMMAND) process.exit(await relay(process.argv[3] ?? ''))
  const parsed = parseArguments(process.argv.slice(2))
  if (parsed.kind === 'help') {
    process.stdout.write(HELP)
    return
  }
  if (parsed.kind === 'version') {
    process.stdout.write(`sandboxd ${SOFTWARE_VERSION}\n`)
    return
  }
  if (parsed.kind === 'invalid') fail(parsed.message, 'sandboxd --help')
  // The reader of the log may be gone; a broken pipe must not keep processes from being terminated in order.
  process.stderr.on('error', () => undefined)
  const log = createLog(
    (line) => process.stderr.write(line),
    () => new Date(),
  )
  const withOomScore = openOomScore()
  if (!forbidDumps())
    log.warn('dumpable', {
      message: 'The kernel refuses to protect the memory of this process from other processes',
    })
  const source = await openCredential(parsed.credential, log)
  if (!source.isOk) return fail(source.message, source.hint)
  const user = findUser(parsed.runAs)
  const workspace = user.asUser(() => findWorkspace(parsed.workspace))
  const reaper = new OrphanReaper()
  if (!reaper.start())
    log.warn('no_subreaper', {
      message: 'The kernel refuses to make orphaned processes children of this one',
    })
  const scanner = new ProcessScanner()
  if (parsed.gatewaySocket !== undefined)
    await forwardPort({ port: GATEWAY_PORT, socketPath: parsed.gatewaySocket, name: 'gateway' }, log)
  const baseEnv = await composeEnv(parsed, log)
  const settings: Settings = {
    version: SOFTWARE_VERSION,
    workspace,
    baseEnv,
    shell: [parsed.shell ?? baseEnv['SHELL'] ?? '/bin/sh', '-l'],
    credential: source.credential,
    origins: parsed.origins,
    hosts: parsed.hosts,
    maxSessions: parsed.maxSessions,
    maxLifetimeSeconds: parsed.maxLifetimeSeconds,
    maxIdleSeconds: parsed.maxIdleSeconds,
    requestsPerSecond: parsed.requestsPerSecond,
    maxMessageBytes: parsed.maxMessageBytes,
    session: parsed.session,
  }
  const now = (): number => performance.now()
  const renderer = new ScreenRenderer(
    () => new Worker(new URL('./screen/screen-worker.ts', import.meta.url).href),
  )
  const startProcess = createStartProcess({ children: reaper, scanner, withOomScore }, user)
  const tmux = new TmuxService({
    startProcess,
    uid: parsed.runAs?.uid ?? process.getuid?.() ?? 0,
    now,
    asUser: user.asUser,
    cwd: workspace,
    baseEnv,
  })
  const registry = new SessionRegistry(
    settings,
    {
      startProcess,
      panes: tmux,
      asUser: user.asUser,
      temporaryFolder: tmpdir(),
      createScreen: (session) => new ScreenModel(session, renderer),
      log,
      now,
    },
    { mintId: () => mintSessionId(source.credential), wallClock: Date.now },
  )
  const files = new FilesThread({
    createWorker: () => new Worker(new URL('./workspace/thread/files-worker.ts', import.meta.url).href),
    setUp: { root: workspace, umask: process.umask(), user: parsed.runAs },
  })
  const runTool = createRunTool({ baseEnv, user, children: reaper, scanner, withOomScore, now })
  const gitScratch = new GitScratch(tmpdir())
  const ripgrep = await findRipgrep({
    programFolder: import.meta.dir,
    executable: process.execPath,
    user,
  })
  const watches = new WatchService({ files, asUser: user.asUser, now })
  const paused = new SharedArrayBuffer(4)
  const versions = new VersionService({
    thread: new WorkerClient<VersionThread>({
      createWorker: () => new Worker(new URL('./versions/version-worker.ts', import.meta.url).href),
      setUp: {
        roots: [
          { name: 'workspace', path: workspace },
          ...(parsed.saveHome === undefined ? [] : [{ name: 'home', path: parsed.saveHome }]),
        ],
        user: parsed.runAs,
        paused,
      },
      task: 'save files',
    }),
    paused: new Int32Array(paused),
    pause: pauseProcesses,
    wallClock: Date.now,
    sleep: (ms) => Bun.sleep(ms),
    later: (ms, action) => {
      const timer = setTimeout(action, ms)
      return () => clearTimeout(timer)
    },
  })
  const workspaceFolder = user.asUser(() => openSync(workspace, 'r'))
  const agents = new AgentRegistry({
    stateFolder: parsed.state,
    // Processes of the same user could write sandboxd's files.
    isTamperProof: parsed.runAs !== undefined,
    hasTui: () => registry.hasAgentTui,
    startProcess,
    asUser: user.asUser,
    tree: (folder) => ({ runTool, asUser: user.asUser, workspace: workspaceFolder, folder }),
    workspace,
    baseEnv,
    temporaryFolder: tmpdir(),
    now,
    epochMs: performance.timeOrigin,
    wallClock: Date.now,
    randomHex: randomText,
    terminals: {
      registry,
      openScreen: (cols, rows) => renderer.open(cols, rows),
      now,
      randomHex: randomText,
    },
    log,
  })
  const { listen: address } = parsed
  /** Set by control where there is no supervisor to write the file. */
  let stopReason: StopReason | undefined
  const server = await open(address, {
    settings,
    registry,
    versions,
    agents,
    workspace: {
      root: workspace,
      files,
      transfer: files,
      uploads: new Uploads(files),
      runTool,
      gitScratch,
      gitLocks: {
        // Processes outside the sandbox are not visible.
        hasProcess: async (prefix) => parsed.isWorkspaceShared || (await scanner.hasName(prefix)),
        wallClock: Date.now,
      },
      ripgrep,
      watches,
      tmux,
      texts: new Semaphore(RESPONSE_MEMORY),
      searches: new Semaphore(RESPONSE_MEMORY),
      archives: new Semaphore(ARCHIVE_LIMITS),
    },
    log,
    mintRequestId: () => randomText(8),
    mintIdentity: () => randomText(16),
    now,
    epochMs: performance.timeOrigin,
    wallClock: Date.now,
    setStopReason: (reason) => {
      stopReason = reason
    },
  })
  if (!source.remove())
    fail('cannot remove the secret file', 'put it into a folder that sandboxd can write to')
  // Before the ready line: after it, the parent may send SIGTERM.
  let isStopping = false
  const stop = async (): Promise<void> => {
    if (isStopping) return
    isStopping = true
    log.info('stopping', { sessions: registry.size })
    const reason = stopReason ?? readStopReason(address)
    const plan = planShutdown(parsed.stopMs, reason)
    await Promise.all([registry.shutDown(plan), agents.shutDown(plan.totalMs)])
    // With another reason, control has saved the files or they are not wanted.
    if (reason === undefined || (reason === 'shutting_down' && versions.isWatched))
      await versions.awaitLastSave(parsed.lastSaveMs)
    if (address.kind !== 'unix' && server.port !== undefined) await awaitClosingConnections(server.port)
    await server.stop(true)
    gitScratch[Symbol.dispose]()
    if (address.kind === 'unix') rmSync(address.path, { force: true })
    process.exit(0)
  }
  process.on('SIGTERM', () => void stop())
  process.on('SIGINT', () => void stop())

  const url =
    address.kind === 'unix'
      ? `unix:${address.path}`
      : `http://${address.hostname.includes(':') ? `[${address.hostname}]` : address.hostname}:${server.port}`
  process.stdout.write(`${JSON.stringify({ type: 'ready', url, version: SOFTWARE_VERSION })}\n`)
}

await main()
