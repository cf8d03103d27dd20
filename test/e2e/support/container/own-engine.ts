import { mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { eventually } from '@sandwire/testing'
import { runDocker } from './docker.ts'
import { commandsRunning } from './processes.ts'

/** Images are kept here; ignored by git. */
const DATA_FOLDER = resolve(import.meta.dir, '../../../../.cache/docker')
const BRIDGE = 'docker0'
/** Explicit, because otherwise the engine reports no gateway to workerd. */
const BRIDGE_ADDRESS = '172.17.0.1/16'
const FOLDER_PREFIX = 'sandwire-engine-'
const START_MS = 60_000
const STOP_MS = 30_000

function hasBridge(): boolean {
  return Bun.spawnSync(['ip', 'link', 'show', BRIDGE], { stdout: 'ignore', stderr: 'ignore' }).success
}

function isAnswering(socketPath: string): Promise<boolean> {
  return fetch('http://localhost/_ping', { unix: socketPath }).then(
    (response) => response.ok,
    () => false,
  )
}

/** A dockerd that changes neither the machine's packet filter nor its routing. */
export class OwnEngine {
  readonly host: string
  readonly #folder: string
  readonly #child: Bun.Subprocess
  readonly #madeBridge: boolean

  private constructor(folder: string, child: Bun.Subprocess, madeBridge: boolean) {
    this.#folder = folder
    this.#child = child
    this.#madeBridge = madeBridge
    this.host = `unix://${folder}/docker.sock`
  }

  static async start(): Promise<OwnEngine> {
    removeLeftovers()
    const folder = mkdtempSync(join(tmpdir(), FOLDER_PREFIX))
    mkdirSync(DATA_FOLDER, { recursive: true })
    const log = openSync(join(folder, 'log'), 'w')
    const madeBridge = !hasBridge()
    const child = Bun.spawn(
      [
        'setpriv',
        '--pdeathsig',
        'TERM',
        'dockerd',
        '--host',
        `unix://${folder}/docker.sock`,
        '--data-root',
        DATA_FOLDER,
        '--exec-root',
        join(folder, 'exec'),
        '--pidfile',
        join(folder, 'pid'),
        '--bip',
        BRIDGE_ADDRESS,
        '--ip',
        '127.0.0.1',
        '--iptables=false',
        '--ip6tables=false',
        '--ip-forward=false',
        '--ip-masq=false',
      ],
      { stdin: 'ignore', stdout: log, stderr: log },
    )
    const engine = new OwnEngine(folder, child, madeBridge)
    try {
      await eventually(() => child.exitCode !== null || isAnswering(`${folder}/docker.sock`), {
        what: 'the Docker engine to answer',
        timeoutMs: START_MS,
      })
      if (child.exitCode !== null) throw new Error(`dockerd ended with ${child.exitCode}`)
      await engine.#removeContainers()
      return engine
    } catch (error) {
      const tail = readFileSync(join(folder, 'log'), 'utf8').slice(-2000)
      await engine.stop()
      throw new Error(`Cannot start a Docker engine: ${String(error)}\n${tail}`, { cause: error })
    }
  }

  /** Ends every container and the engine, and removes its mounts, bridge and files. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null) await this.#removeContainers()
    this.#child.kill('SIGTERM')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS)
    await this.#child.exited
    clearTimeout(timer)
    for (const folder of [this.#folder, DATA_FOLDER]) unmountUnder(folder)
    if (this.#madeBridge && hasBridge()) Bun.spawnSync(['ip', 'link', 'delete', BRIDGE])
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #removeContainers(): Promise<void> {
    const { stdout } = await runDocker(this.host, ['ps', '--all', '--quiet'])
    const ids = stdout.split('\n').filter((id) => id !== '')
    if (ids.length > 0) await runDocker(this.host, ['rm', '--force', ...ids])
  }
}

/**
 * Removes what a killed engine left behind. Its networks would respond to addresses that are assigned again, so that
 * containers were reachable only sometimes. Runs only while no engine runs; running containers are kept.
 */
function removeLeftovers(): void {
  if (commandsRunning().some((command) => command.startsWith('containerd-shim'))) return
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(FOLDER_PREFIX))) {
    unmountUnder(join(tmpdir(), name))
    rmSync(join(tmpdir(), name), { recursive: true, force: true })
  }
  unmountUnder(DATA_FOLDER)
  for (const port of bridgePorts()) Bun.spawnSync(['ip', 'link', 'delete', port])
  if (hasBridge()) Bun.spawnSync(['ip', 'link', 'delete', BRIDGE])
}

function bridgePorts(): readonly string[] {
  try {
    return readdirSync(`/sys/class/net/${BRIDGE}/brif`)
  } catch {
    return []
  }
}

/** Mounts left by a killed engine, innermost first. */
function unmountUnder(folder: string): void {
  const points = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((point) => point.startsWith(`${folder}/`))
  for (const point of points.reverse()) Bun.spawnSync(['umount', '--lazy', point])
}
