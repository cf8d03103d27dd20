import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { slotBindingName } from '@sandwire/internal-api'
import { Miniflare, type MiniflareOptions, type SharedOptions, type WorkerOptions } from 'miniflare'
import type { GatewayGrant, GatewayUsage } from '../../src/credentials/grant.ts'
import { openGatewayTokens } from '../../src/credentials/grant-token.ts'
import { type Outcome, unwrap } from '../../src/outcome.ts'
import { type SandboxRunner, FakeHost } from './fake-host.ts'

/** The local token of tests. */
export const TOKEN = `swl_${'t'.repeat(43)}`

/** Methods of a gateway grant's object that tests call. */
interface GrantObject {
  create(grant: GatewayGrant, tokenHash: string): Promise<Outcome<void>>
  end(): Promise<Outcome<GatewayUsage>>
  usage(): Promise<Outcome<GatewayUsage>>
}

export interface ControlOptions {
  readonly runner: SandboxRunner
  /** Settings, or a function that returns them for the port that control listens on. */
  readonly config?: Readonly<Record<string, unknown>> | ((port: number) => Readonly<Record<string, unknown>>)
  /** Secrets of the operator, by the names of their bindings. */
  readonly bindings?: Readonly<Record<string, string>>
  /** Gives every sandbox object a container. Its outbound connections end at servers of the tests on this machine. */
  readonly containers?: {
    /** Prefix of the container names. */
    readonly name: string
    readonly socketPath: string
    readonly image: string
    readonly egressImage: string
    /** The workerd to run; it must be able to close connections to containers. */
    readonly workerd: string
  }
  /** Folder with the files of the workbench; not served by default. */
  readonly workbench?: string
  /** Workers beside control, which can bind its objects by `scriptName: 'control'`. */
  readonly workers?: readonly Readonly<Record<string, unknown>>[]
  /** Changes the bundle, to simulate behavior that workerd cannot be made to show. */
  readonly alter?: (script: string) => string
  /** Constants of the bundle, to simulate another build. */
  readonly define?: Readonly<Record<string, string>>
}

let bundle: Promise<string> | undefined

/** Control as one module, built once per test run. */
async function bundleControl(define: Readonly<Record<string, string>> = {}): Promise<string> {
  const built = await Bun.build({
    entrypoints: [path.join(import.meta.dir, '../../src/index.ts')],
    target: 'browser',
    format: 'esm',
    external: ['cloudflare:*', 'node:*'],
    define: { ...define },
  })
  const [output] = built.outputs
  if (output === undefined) throw new Error('Control was not built')
  return output.text()
}

/** A unix socket as a service that speaks HTTP. */
function dial(socket: string) {
  return { external: { address: `unix:${socket}`, http: {} } }
}

function sha256(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}

/** A free port below the ephemeral range, so that no other test is assigned it before control listens. */
async function pickPort(): Promise<number> {
  const candidate = 20_000 + Math.floor(Math.random() * 10_000)
  try {
    Bun.listen({ hostname: '127.0.0.1', port: candidate, socket: { data: () => undefined } }).stop(true)
    return candidate
  } catch {
    // In use.
    return pickPort()
  }
}

/** The real control in workerd, with a fake host. */
export class RunningControl implements AsyncDisposable {
  readonly host: FakeHost
  readonly origin: string
  readonly port: number
  /** Lines that control logged. */
  readonly log: string[]
  /** Port of the credential gateway, where workerd of a host has a socket per slot. */
  readonly gatewayPort: number
  readonly #idKey: string
  #miniflare: Miniflare
  readonly #folder: string
  readonly #optionsOf: (config: Readonly<Record<string, unknown>>) => MiniflareOptions

  constructor(parts: {
    optionsOf: (config: Readonly<Record<string, unknown>>) => MiniflareOptions
    host: FakeHost
    port: number
    log: string[]
    miniflare: Miniflare
    folder: string
    gatewayPort: number
    idKey: string
  }) {
    this.gatewayPort = parts.gatewayPort
    this.#idKey = parts.idKey
    this.host = parts.host
    this.port = parts.port
    this.origin = `http://localhost:${parts.port}`
    this.log = parts.log
    this.#miniflare = parts.miniflare
    this.#folder = parts.folder
    this.#optionsOf = parts.optionsOf
  }

  /** Restarts it with other settings and the same storage. */
  async restart(config: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#miniflare.dispose()
    this.#miniflare = new Miniflare(this.#optionsOf(config))
    await this.#miniflare.ready
  }

  /** A request with the local token, unless the headers override it. */
  fetch(
    route: string,
    init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string>; json?: unknown } = {},
  ): Promise<Response> {
    const { json, headers, ...rest } = init
    return fetch(`http://127.0.0.1:${this.port}${route}`, {
      redirect: 'manual',
      ...rest,
      headers: {
        host: `localhost:${this.port}`,
        authorization: `Bearer ${TOKEN}`,
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
  }

  /** The object of a run's gateway grant. */
  async #grantObject(run: string): Promise<GrantObject> {
    const namespace = await this.#miniflare.getDurableObjectNamespace('GATEWAY_GRANT')
    return namespace.get(namespace.idFromName(run)) as unknown as GrantObject
  }

  /** Creates a gateway grant, as `gatewayGrantsOf` does, and returns its token. */
  async grantGateway(grant: GatewayGrant): Promise<string> {
    const tokens = await openGatewayTokens(Uint8Array.fromBase64(this.#idKey))
    const { token, hash } = await tokens.mint(grant.run)
    unwrap(await (await this.#grantObject(grant.run)).create(grant, hash))
    return token
  }

  async endGateway(run: string): Promise<GatewayUsage> {
    return unwrap(await (await this.#grantObject(run)).end())
  }

  async gatewayUsage(run: string): Promise<GatewayUsage> {
    return unwrap(await (await this.#grantObject(run)).usage())
  }

  /** A request to a Worker beside control. */
  async fetchWorker(name: string, route: string, json?: unknown): Promise<Response> {
    const worker = await this.#miniflare.getWorker(name)
    const init = json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) }
    const response = await worker.fetch(`http://worker${route}`, init)
    return new Response(await response.text(), { status: response.status })
  }

  /** Miniflare's own port, which is not the public one. */
  get developmentUrl(): Promise<URL> {
    return this.#miniflare.ready
  }

  /** Value of a counter; zero when it is missing. */
  async metric(series: string): Promise<number> {
    const text = await (await this.fetch('/metrics')).text()
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `))
    return line === undefined ? 0 : Number(line.slice(series.length + 1))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#miniflare.dispose()
    await this.host[Symbol.asyncDispose]()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

export async function startControl({
  runner,
  config,
  bindings,
  define,
  containers,
  workbench,
  workers,
  alter = (script) => script,
}: ControlOptions): Promise<RunningControl> {
  const folder = mkdtempSync(path.join(tmpdir(), 'sandwire-control-'))
  const host = new FakeHost(path.join(folder, 'host.sock'), runner)
  const port = await pickPort()
  const keys = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  const pkcs8 = new Uint8Array(await crypto.subtle.exportKey('pkcs8', keys.privateKey))
  const gatewayPort = await pickPort()
  const log: string[] = []
  const script = alter(await (define === undefined ? (bundle ??= bundleControl()) : bundleControl(define)))
  const idKey = crypto.getRandomValues(new Uint8Array(32)).toBase64()
  const workerOf = (settings: Readonly<Record<string, unknown>>): WorkerOptions => ({
    modules: [{ type: 'ESModule', path: 'index.js', contents: script }],
    ...(containers !== undefined && { name: containers.name }),
    modulesRoot: '/',
    compatibilityDate: '2026-07-01',
    compatibilityFlags: [
      'no_web_socket_compression',
      'enable_request_signal',
      'nodejs_compat',
      'no_nodejs_compat_v2',
    ],
    durableObjects: {
      SANDBOX: {
        className: 'SandboxObject',
        useSQLite: true,
        ...(containers !== undefined && { container: { imageName: containers.image } }),
      },
      ACCOUNT: { className: 'AccountObject', useSQLite: true },
      MACHINE: { className: 'MachineObject', useSQLite: true },
      GATEWAY_GRANT: { className: 'GatewayGrantObject', useSQLite: true },
      CLAUDE_SANDBOX: { className: 'ClaudeSandbox', useSQLite: true },
      CONVERSATION: { className: 'ConversationObject', useSQLite: true },
    },
    serviceBindings: {
      HOST: dial(host.socket),
      // Issuers of tests are on this machine; nothing else is reachable.
      ISSUERS: { network: { allow: ['local'], deny: [] } },
      UPSTREAMS: { network: { allow: ['local'], deny: [] } },
      ...(workbench !== undefined && { ASSETS: { disk: { path: workbench, writable: false } } }),
      ...(containers !== undefined && { OUTSIDE: { network: { allow: ['local', 'private'], deny: [] } } }),
      ...Object.fromEntries(host.slots.map((socket, slot) => [slotBindingName(slot), dial(socket)])),
    },
    ...(containers !== undefined && {
      containerEngine: {
        localDocker: {
          socketPath: containers.socketPath,
          containerEgressInterceptorImage: containers.egressImage,
        },
      },
    }),
    outboundService: () => Promise.reject(new Error('Control reaches no network')),
    bindings: {
      ...bindings,
      SANDWIRE_SIGNING_KEY: pkcs8.toBase64(),
      SANDWIRE_ID_KEY: idKey,
      SANDWIRE_CONFIG: JSON.stringify({
        mode: 'local',
        publicOrigins: [`http://localhost:${port}`, `http://127.0.0.1:${port}`],
        hosts: [`localhost:${port}`, `127.0.0.1:${port}`],
        localTokenSha256: sha256(TOKEN),
        sleepAfterMs: 600_000,
        alarmMs: 30_000,
        maxSandboxes: 100,
        provider: containers === undefined ? 'host' : 'container',
        workspaceMode: 'sandboxes',
        ...settings,
      }),
    },
    unsafeDirectSockets: [
      { host: '127.0.0.1', port, entrypoint: 'Public' },
      { host: '127.0.0.1', port: gatewayPort, entrypoint: 'Gateway' },
    ],
  })
  const shared: SharedOptions = {
    durableObjectsPersist: path.join(folder, 'state'),
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      for (const stream of [stdout, stderr])
        stream.on('data', (chunk: Uint8Array) => log.push(...new TextDecoder().decode(chunk).split('\n')))
    },
  }
  const optionsOf = (settings: Readonly<Record<string, unknown>>): MiniflareOptions =>
    workers === undefined
      ? { ...shared, ...workerOf(settings) }
      : { ...shared, workers: [{ name: 'control', ...workerOf(settings) }, ...workers] }
  // Miniflare reads it only from the environment.
  if (containers !== undefined) process.env['MINIFLARE_WORKERD_PATH'] = containers.workerd
  const miniflare = new Miniflare(optionsOf(typeof config === 'function' ? config(port) : (config ?? {})))
  await miniflare.ready
  return new RunningControl({ host, port, log, miniflare, folder, optionsOf, gatewayPort, idKey })
}
