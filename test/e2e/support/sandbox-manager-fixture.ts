import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import {
  DEFAULT_SANDBOX_LIMITS,
  exportPublicKey,
  ID_ALPHABET,
  type InternalClaims,
  signInternalToken,
  parseSlotAddress,
  type StartSpec,
} from '@sandwire/internal-api'
import { connectPlain, type PlainClient, Random } from '@sandwire/testing'
import { createIsolation } from '../../../apps/host/src/isolation/choose-isolation.ts'
import { BUNDLE_ENTRY, bundleDaemon } from '../../../apps/host/src/isolation/daemon-bundle.ts'
import type {
  DaemonProgram,
  Isolation,
  IsolationSettings,
} from '../../../apps/host/src/isolation/isolation.ts'
import {
  createSandboxManager,
  type SandboxManagerOptions,
  type SandboxManager,
} from '../../../apps/host/src/sandboxes/sandbox-manager.ts'
import { closeConnections } from '../../../apps/host/src/slots/close-connections.ts'
import { planSlots, type SlotPlan, socketsOf } from '../../../apps/host/src/slots/slots.ts'

const ROOT = path.resolve(import.meta.dir, '../../..')
const SUPERVISOR = path.join(ROOT, 'apps/host/src/supervisor/main.ts')

/** Fewer than a host has, so that leaked slots show. */
const SLOTS = 12

/** A sandbox manager with its own folders; disposing it removes everything. */
export class SandboxManagerFixture implements AsyncDisposable {
  readonly kind: Isolation['kind']
  readonly manager: SandboxManager
  /** Contains every file of the fixture, except sockets. */
  readonly folder: string
  readonly settings: IsolationSettings
  readonly #keys: CryptoKeyPair
  readonly #publicKey: string

  private constructor(parts: {
    kind: Isolation['kind']
    folder: string
    settings: IsolationSettings
    keys: CryptoKeyPair
    publicKey: string
  }) {
    this.kind = parts.kind
    this.folder = parts.folder
    this.settings = parts.settings
    this.#keys = parts.keys
    this.#publicKey = parts.publicKey
    this.manager = this.openManager()
  }

  static async open(kind: Isolation['kind'], program?: DaemonProgram): Promise<SandboxManagerFixture> {
    // Short, because socket paths are limited; with root, the users of sandboxes traverse it.
    const folder = mkdtempSync('/tmp/swk-')
    const code = { folder: await bundleDaemon(path.join(ROOT, 'apps/sandboxd/src'), `${folder}/cache`) }
    const settings: IsolationSettings = {
      dataFolder: path.join(folder, 'data'),
      runBase: mkdtempSync(process.getuid?.() === 0 ? '/run/swk-' : '/tmp/swr-'),
      program: program ?? { executable: process.execPath, code: { ...code, entry: BUNDLE_ENTRY } },
      isRoot: process.getuid?.() === 0,
    }
    const keys = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
    const publicKey = await exportPublicKey(keys.publicKey)
    return new SandboxManagerFixture({ kind, folder, settings, keys, publicKey })
  }

  get #slots(): SlotPlan {
    return planSlots(this.settings, SLOTS)
  }

  /** Opens another manager of the same sandboxes, like the next host. */
  openManager(changes: Partial<SandboxManagerOptions> = {}): SandboxManager {
    return createSandboxManager({
      sandboxesFolder: path.join(this.settings.dataFolder, 'sandboxes'),
      controlFolder: path.join(this.settings.runBase, 'control'),
      isolation: createIsolation(this.kind, this.settings),
      settings: this.settings,
      supervisor: [process.execPath, SUPERVISOR],
      slots: this.#slots,
      // This process takes control's role.
      closeConnections: (spared) => void closeConnections(process.pid, new Set([...spared, process.pid])),
      ...changes,
    })
  }

  spec(changes: Partial<StartSpec> = {}): StartSpec {
    return {
      id: mintSandboxId(),
      name: 'dev',
      publicKey: this.#publicKey,
      network: { policy: 'none', allow: [] },
      limits: { ...DEFAULT_SANDBOX_LIMITS, diskBytes: 64 * 1024 * 1024 },
      env: {},
      ...changes,
    }
  }

  /** A file in a sandbox's folder. */
  fileOf(id: string, name: string): string {
    return path.join(this.settings.dataFolder, 'sandboxes', id, name)
  }

  /** The unix socket of a slot address. */
  socketOf(address: string): string {
    const socket = socketsOf(this.#slots)[parseSlotAddress(address) ?? -1]
    if (socket === undefined) throw new Error(`Cannot dial "${address}": not a slot`)
    return socket
  }

  /** The WebSocket URL of a path of a sandbox. */
  socketUrl(address: string, target: string): string {
    return `ws+unix:${this.socketOf(address)}:${target}`
  }

  supervisorPid(id: string): number {
    const { pid } = JSON.parse(readFileSync(this.fileOf(id, 'state.json'), 'utf8')) as { pid: number }
    return pid
  }

  async headersFor(
    id: string,
    method: InternalClaims['method'],
    target: string,
  ): Promise<{ authorization: string }> {
    const nowMs = Date.now()
    const token = await signInternalToken(this.#keys.privateKey, {
      method,
      path: target,
      sandbox: id,
      identity: 'local:1',
      authority: 'driver',
      exec: true,
      requestId: 'r-1',
      issuedMs: nowMs,
      expiresMs: nowMs + 3e4,
    })
    return { authorization: `Bearer ${token}` }
  }

  /** Attaches to a shell script in a sandbox. */
  async attach(id: string, script: string): Promise<PlainClient> {
    const status = await this.manager.status(id)
    if (status.state !== 'running') throw new Error(`Cannot attach: the sandbox is ${status.state}`)
    const target = `/attach?${new URLSearchParams([
      ['cmd', 'sh'],
      ['arg', '-c'],
      ['arg', script],
    ]).toString()}`
    return connectPlain(this.socketUrl(status.address, target), {
      headers: await this.headersFor(id, 'GET', target),
    })
  }

  /** Runs a shell script in a sandbox and returns its output. */
  async run(id: string, script: string): Promise<string> {
    const client = await this.attach(id, script)
    await client.closed
    return client.stdout.text
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { id } of await this.manager.list()) await this.manager.destroy(id)
    for (const each of [this.folder, this.settings.runBase]) rmSync(each, { recursive: true, force: true })
  }
}

const random = new Random(Date.now() % 2 ** 31)

/** Generates an id in control's format. */
export function mintSandboxId(): string {
  return Array.from({ length: 32 }, () => ID_ALPHABET.charAt(random.int(0, 31))).join('')
}
