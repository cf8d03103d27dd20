import { cpSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { ExecSession } from './exec-session.ts'
import type { FakeService } from './services.ts'

/** Programs that sprites run are in it; it may be in one of the folders that each sprite has of its own. */
const REPOSITORY = path.resolve(import.meta.dir, '../../../..')
const INIT = path.join(import.meta.dir, 'sprite-init.ts')
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Folders of a sprite that are its own; everything else is this machine's, for programs. */
const OWN_FOLDERS = ['home', 'srv'] as const

export interface Checkpoint {
  readonly id: string
  readonly createTime: string
  readonly comment: string | undefined
  readonly folder: string
}

/** What the API may cut: every open WebSocket of a sprite. */
export interface Disconnectable {
  disconnect(): void
}

/**
 * One sprite: real processes with their own `/home`, `/srv` and network. `running` and `warm` differ in that the processes of a
 * warm sprite are stopped by a signal; a cold one has none.
 */
export class FakeSprite {
  readonly name: string
  readonly id: string
  readonly createdAt = new Date().toISOString()
  readonly root: string
  readonly sessions = new Map<string, ExecSession>()
  readonly services = new Map<string, FakeService>()
  readonly checkpoints: Checkpoint[] = []
  readonly connections = new Set<Disconnectable>()
  urlAuth = 'sprite'
  /** Sessions so far; their ids continue from it. */
  #sessionCount = 19
  #init: Bun.Subprocess | undefined
  #starting: Promise<void> | undefined
  #isFrozen = false

  constructor(name: string, id: string, root: string) {
    this.name = name
    this.id = id
    this.root = root
    for (const folder of ['home/sprite', 'srv', '.sprite/logs/services', 'run'])
      mkdirSync(path.join(root, folder), { recursive: true })
  }

  get status(): 'cold' | 'warm' | 'running' {
    if (this.#init === undefined) return 'cold'
    return this.#isFrozen ? 'warm' : 'running'
  }

  mintSessionId(): string {
    return String((this.#sessionCount += 1))
  }

  /** Starts or thaws the sprite, as every request to it does. Services of a cold sprite start again. */
  async wake(): Promise<void> {
    if (this.#isFrozen) {
      this.#isFrozen = false
      this.#signalAll('SIGCONT')
    }
    if (this.#init === undefined) this.#starting ??= this.#boot()
    await this.#starting
  }

  async #boot(): Promise<void> {
    rmSync(this.#socket, { force: true })
    const own = OWN_FOLDERS.flatMap((folder) => ['--bind', path.join(this.root, folder), `/${folder}`])
    const isHidden = OWN_FOLDERS.some((folder) => REPOSITORY.startsWith(`/${folder}/`))
    const init = Bun.spawn(
      [
        'bwrap',
        '--dev-bind',
        '/',
        '/',
        ...own,
        ...(isHidden ? ['--ro-bind', REPOSITORY, REPOSITORY] : []),
        '--unshare-net',
        '--die-with-parent',
        process.execPath,
        INIT,
        this.#socket,
      ],
      { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' },
    )
    this.#init = init
    for await (const _ of init.stdout) break
    this.#starting = undefined
    for (const service of this.services.values()) service.start()
  }

  get #socket(): string {
    return path.join(this.root, 'run', 'init.sock')
  }

  /** Stops the processes with a signal and cuts all connections, as after ~30 s without activity. */
  freeze(): void {
    this.disconnectAll()
    this.#signalAll('SIGSTOP')
    this.#isFrozen = true
  }

  /** Ends all processes; files stay. */
  async freezeCold(): Promise<void> {
    this.disconnectAll()
    this.#isFrozen = false
    for (const service of this.services.values()) service.markStopped()
    this.#signalAll('SIGKILL')
    await this.#init?.exited
    this.#init = undefined
    this.sessions.clear()
  }

  disconnectAll(): void {
    for (const connection of this.connections) connection.disconnect()
  }

  /** Opens a TCP connection to a port inside; undefined when nothing listens. */
  async connect(port: number): Promise<SpriteConnection | undefined> {
    const opened = Promise.withResolvers<SpriteConnection | undefined>()
    const connection = new SpriteConnection()
    let isOpen = false
    await Bun.connect({
      unix: this.#socket,
      allowHalfOpen: true,
      socket: {
        open: (socket) => {
          connection.attach(socket)
          socket.write(`${port}\n`)
        },
        data: (_, bytes) => {
          if (isOpen) return connection.receive(bytes)
          isOpen = true
          opened.resolve(connection)
          if (bytes.length > 3) connection.receive(bytes.subarray(3))
        },
        drain: () => connection.drain(),
        end: () => connection.finish(),
        close: () => {
          opened.resolve(undefined)
          connection.finish()
        },
        error: () => connection.finish(),
      },
    }).catch(() => opened.resolve(undefined))
    return opened.promise
  }

  /** The command that runs argv inside, with the sprite's default environment unless one is given. */
  commandOf(argv: readonly string[], { env = [], dir }: SpriteProcessOptions): string[] {
    const given = new Map(env.map((pair) => [pair.split('=', 1)[0] ?? '', pair] as const))
    const all = [
      'HOME=/home/sprite',
      ...(env.length === 0 ? [`PATH=${DEFAULT_PATH}`] : []),
      ...given.values(),
    ]
    const enter = `nsenter -t ${this.#inner} -m -n --wdns=${dir ?? '/home/sprite'}`.split(' ')
    return [...enter, 'env', '-i', ...all, ...argv]
  }

  /** The path of a file of the sprite on this machine. */
  resolve(file: string, workingDir: string): string {
    const inside = path.resolve(workingDir === '' ? '/home/sprite' : workingDir, file)
    const isOwn = OWN_FOLDERS.some((folder) => inside === `/${folder}` || inside.startsWith(`/${folder}/`))
    return isOwn ? path.join(this.root, inside) : inside
  }

  checkpoint(comment: string | undefined): Checkpoint {
    const id = `v${this.checkpoints.length + 1}`
    const folder = path.join(this.root, 'checkpoints', id)
    cpSync(path.join(this.root, 'home'), folder, { recursive: true, verbatimSymlinks: true })
    const made = { id, createTime: new Date().toISOString(), comment, folder }
    this.checkpoints.push(made)
    return made
  }

  /** Replaces the files; all processes end. */
  async restore({ folder }: Checkpoint): Promise<void> {
    await this.freezeCold()
    const home = path.join(this.root, 'home')
    rmSync(home, { recursive: true, force: true })
    cpSync(folder, home, { recursive: true, verbatimSymlinks: true })
    await this.wake()
  }

  async destroy(): Promise<void> {
    await this.freezeCold()
    rmSync(this.root, { recursive: true, force: true })
  }

  /** Process in the sprite's namespaces. */
  get #inner(): number {
    const outer = this.#init?.pid ?? 0
    const [child = String(outer)] = readFileSync(`/proc/${outer}/task/${outer}/children`, 'utf8').split(' ')
    return Number(child === '' ? outer : child)
  }

  /** Every process that shares the network of the sprite. */
  #signalAll(signal: NodeJS.Signals): void {
    if (this.#init === undefined || this.#init.exitCode !== null) return
    const network = namespaceOf(this.#inner)
    for (const entry of readdirSync('/proc')) {
      const pid = Number(entry)
      if (!Number.isInteger(pid) || pid === process.pid || namespaceOf(pid) !== network) continue
      try {
        process.kill(pid, signal)
      } catch {
        // It ended meanwhile.
      }
    }
  }
}

export interface SpriteProcessOptions {
  /** `K=V`; replaces the default environment. */
  readonly env?: readonly string[]
  readonly dir?: string
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`)
  } catch {
    // It ended, or belongs to the kernel.
    return undefined
  }
}

/** A TCP connection into a sprite. Bytes that arrive before `onData` is set are kept. */
export class SpriteConnection {
  #socket: Bun.Socket | undefined
  #pending: Uint8Array[] = []
  #unsent: Uint8Array[] = []
  #isFinished = false
  #onData: ((bytes: Uint8Array) => void) | undefined
  #onEnd: (() => void) | undefined

  attach(socket: Bun.Socket): void {
    this.#socket = socket
  }

  listen(onData: (bytes: Uint8Array) => void, onEnd: () => void): void {
    this.#onData = onData
    this.#onEnd = onEnd
    for (const bytes of this.#pending.splice(0)) onData(bytes)
    if (this.#isFinished) onEnd()
  }

  receive(bytes: Uint8Array): void {
    const copy = new Uint8Array(bytes)
    if (this.#onData === undefined) this.#pending.push(copy)
    else this.#onData(copy)
  }

  finish(): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#onEnd?.()
  }

  write(bytes: Uint8Array): void {
    this.#unsent.push(bytes)
    this.drain()
  }

  drain(): void {
    for (let first = this.#unsent[0]; first !== undefined; first = this.#unsent[0]) {
      const written = this.#socket?.write(first) ?? 0
      if (written < 0) return
      if (written < first.length) {
        this.#unsent[0] = first.subarray(written)
        return
      }
      this.#unsent.shift()
    }
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  close(): void {
    this.#socket?.end()
  }
}
