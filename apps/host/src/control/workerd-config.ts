import { SLOT_HEADER, slotBindingName } from '@sandwire/internal-api'
import { type IssuerConfig } from '@sandwire/operator-settings'
import type { Config, Network, Service, Socket, Worker, Worker_Binding } from 'miniflare'
import type { Keys } from '../data/keys.ts'
import type { Machine } from '../machine.ts'
import type { Containers } from '../settings/containers.ts'
import type { ListenSettings } from '../settings/listen.ts'
import type { Secrets } from '../settings/secrets.ts'
import type { Sprites } from '../settings/sprites.ts'
import type { S3Settings } from '../settings/store.ts'
import { type ConfiguredNetwork, describeNetwork } from './configured-network.ts'

/** Control's configuration: the JSON of binding `SANDWIRE_CONFIG`. */
export interface ControlConfig {
  readonly mode: ListenSettings['mode']
  readonly issuers: readonly IssuerConfig[]
  readonly publicOrigins: readonly string[]
  /** Absent: cookies are set under every public origin. */
  readonly privateOrigins?: { readonly owner: string; readonly guests: string }
  /** Absent: none. */
  readonly embedOrigins?: readonly string[]
  readonly hosts: readonly string[]
  /** Workerd terminates TLS. */
  readonly hasTls?: boolean
  /** Header in which a proxy passes the client's address. */
  readonly clientAddressHeader?: string
  /** Absent: the local token is not accepted. */
  readonly localTokenSha256?: string
  readonly sleepAfterMs: number
  readonly alarmMs: number
  readonly maxSandboxes: number
  /** What the machine has, from which control derives ceilings. */
  readonly machine: Machine['facts']
  readonly provider: 'host' | 'container' | 'sprites'
  /** Settings of the provider `sprites`. */
  readonly sprites?: Sprites
  readonly workspaceMode: 'sandboxes' | 'local'
  /** The bucket of versions; absent: they are stored in a folder, or not saved. */
  readonly s3?: S3Settings
  /** Content codings of the precompressed workbench files. */
  readonly assetCodings?: readonly ('br' | 'gzip')[]
}

/** Everything workerd needs to run control. */
export interface ControlPlan {
  /** Bundle of the Worker, as text. */
  readonly script: string
  readonly control: ControlConfig
  readonly keys: Pick<Keys, 'signingKey' | 'idKey' | 'sessionTokenSecret'>
  readonly secrets: Secrets
  /** Control's network access to issuers. */
  readonly issuerNetwork: ConfiguredNetwork
  /** Control's network access to model APIs and git servers. */
  readonly upstreamNetwork: ConfiguredNetwork
  /** Secrets and variables of the credential gateway, by the names of their bindings. */
  readonly credentials: Readonly<Record<string, string>>
  /** Certificate and key of the public sockets; absent: no TLS. */
  readonly tls?: ListenSettings['tls']
  /** `HOST:PORT` of every public socket. */
  readonly listen: readonly string[]
  /** Unix socket of the host API. */
  readonly hostSocket: string
  /** Unix socket of the store of versions; absent: files are not saved. */
  readonly storeSocket?: string
  /** Control's network access to an S3-compatible store; absent: there is none. */
  readonly storeNetwork?: Network
  /** Control's network access to the Sprites API; absent: there is none. */
  readonly spritesNetwork?: Network
  /** Unix sockets of the slots, in order; each exists while a sandbox has the slot. */
  readonly slots: readonly string[]
  /** Unix sockets on which control serves the credential gateway, one for each slot, in order. */
  readonly gates: readonly string[]
  /** Container settings, with the socket of the egress proxy; absent: the host creates sandboxes. */
  readonly containers?: Containers & { readonly egressSocket: string }
  /** Folder of the objects' databases. */
  readonly objects: string
  /** Folder with the files of the workbench. */
  readonly workbench: string
}

/** The platform's behavior is pinned with control's code. */
const COMPATIBILITY_DATE = '2026-07-01'
/**
 * No WebSocket compression, because messages could expand beyond the size limit. `request.signal` aborts when the client
 * disconnects, so that upstream requests end too. Node's modules are for Zstandard (`node:zlib`), without Node's globals.
 */
const COMPATIBILITY_FLAGS = [
  'no_web_socket_compression',
  'enable_request_signal',
  'nodejs_compat',
  'no_nodejs_compat_v2',
]

/** Headers that proxies set about the client. Without a proxy they are forged, so they are removed. */
const CLAIMED_HEADERS = [
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-ipcountry',
  'cf-pseudo-ipv4',
  'cf-ray',
  'cf-visitor',
  'cf-worker',
  'mf-cf-blob',
  'mf-original-url',
  'mf-route-override',
  'true-client-ip',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]

/** Headers by which control notices a proxy whose header is not configured; otherwise they are removed too. */
const PROXY_HEADERS = ['forwarded', 'x-forwarded-for']

/** `HttpOptions_Style.PROXY`; importing the value would load miniflare, which is slow. */
const PROXY_STYLE = 1

/** Folder of the sandboxes' databases. */
export const SANDBOX_OBJECTS = 'sandbox'

/** `uniqueKey` is the folder of a class's databases, so it never changes. */
const OBJECTS = [
  { binding: 'SANDBOX', className: 'SandboxObject', uniqueKey: SANDBOX_OBJECTS },
  { binding: 'ACCOUNT', className: 'AccountObject', uniqueKey: 'account' },
  { binding: 'MACHINE', className: 'MachineObject', uniqueKey: 'machine' },
  { binding: 'GATEWAY_GRANT', className: 'GatewayGrantObject', uniqueKey: 'gateway-grant' },
  { binding: 'CLAUDE_SANDBOX', className: 'ClaudeSandbox', uniqueKey: 'run' },
  { binding: 'CONVERSATION', className: 'ConversationObject', uniqueKey: 'conversation' },
]

function nameOfSlot(slot: number): string {
  return `slot-${slot}`
}

/** An HTTP service on a unix socket. */
function dial(name: string, socket: string): Service {
  return { name, external: { address: `unix:${socket}`, http: {} } }
}

/** The egress proxy of containers; the request line has the whole URL. */
function describeOutside(socket: string): Service {
  return { name: 'outside', external: { address: `unix:${socket}`, http: { style: PROXY_STYLE } } }
}

function bindings(plan: ControlPlan): Worker_Binding[] {
  const { secrets } = plan
  return [
    { name: 'HOST', service: { name: 'host' } },
    { name: 'ASSETS', service: { name: 'workbench' } },
    ...(plan.storeSocket === undefined ? [] : [{ name: 'STORE', service: { name: 'store' } }]),
    ...(plan.storeNetwork === undefined ? [] : describeS3(secrets)),
    ...(plan.spritesNetwork === undefined
      ? []
      : [
          { name: 'SPRITES', service: { name: 'sprites' } },
          { name: 'SPRITES_API_TOKEN', text: secrets.spritesApiToken ?? '' },
        ]),
    ...plan.slots.map((_socket, slot) => ({
      name: slotBindingName(slot),
      service: { name: nameOfSlot(slot) },
    })),
    { name: 'SANDWIRE_CONFIG', text: JSON.stringify(plan.control) },
    { name: 'SANDWIRE_SIGNING_KEY', text: plan.keys.signingKey },
    { name: 'SANDWIRE_ID_KEY', text: plan.keys.idKey },
    { name: 'SESSION_TOKEN_SECRET', text: secrets.sessionTokenSecret ?? plan.keys.sessionTokenSecret },
    ...(secrets.jwtSecret === undefined ? [] : [{ name: 'JWT_SECRET', text: secrets.jwtSecret }]),
    ...(secrets.apiToken === undefined ? [] : [{ name: 'API_TOKEN', text: secrets.apiToken }]),
    { name: 'ISSUERS', service: { name: 'issuers' } },
    { name: 'UPSTREAMS', service: { name: 'upstreams' } },
    ...Object.entries(plan.credentials).map(([name, text]) => ({ name, text })),
    ...(plan.containers === undefined ? [] : [{ name: 'OUTSIDE', service: { name: 'outside' } }]),
    ...OBJECTS.map(({ binding, className }) => ({
      name: binding,
      durableObjectNamespace: { className },
    })),
  ]
}

/** Network and access key of an S3-compatible store. */
function describeS3({ awsAccessKeyId, awsSecretAccessKey }: Secrets): Worker_Binding[] {
  return [
    { name: 'S3', service: { name: 's3' } },
    { name: 'AWS_ACCESS_KEY_ID', text: awsAccessKeyId ?? '' },
    { name: 'AWS_SECRET_ACCESS_KEY', text: awsSecretAccessKey ?? '' },
  ]
}

/** The engine and its sidecar image. */
function describeEngine({ socket, egressImage }: Containers): Pick<Worker, 'containerEngine'> {
  return {
    containerEngine: {
      localDocker: { socketPath: `unix://${socket}`, containerEgressInterceptorImage: egressImage },
    },
  }
}

/** A public socket; it removes headers that clients could forge. */
function describeSocket(address: string, index: number, { tls, control }: ControlPlan): Socket {
  const { clientAddressHeader } = control
  const claimed = clientAddressHeader === undefined ? CLAIMED_HEADERS : [...CLAIMED_HEADERS, ...PROXY_HEADERS]
  const dropped = claimed.filter((name) => name !== clientAddressHeader)
  const options = { injectRequestHeaders: dropped.map((name) => ({ name })) }
  const socket = { name: `public-${index}`, address, service: { name: 'control', entrypoint: 'Public' } }
  return tls === undefined
    ? { ...socket, http: options }
    : { ...socket, https: { options, tlsOptions: { keypair: { ...tls } } } }
}

/** The gate of a slot. The header replaces one that the client sent. */
function describeGate(address: string, slot: number): Socket {
  return {
    name: `gate-${slot}`,
    address: `unix:${address}`,
    service: { name: 'control', entrypoint: 'Gateway' },
    http: { injectRequestHeaders: [{ name: SLOT_HEADER, value: String(slot) }] },
  }
}

/**
 * V8 collects request objects when its young generation is full, and each holds memory outside V8 until then. With V8's default of
 * 16 MiB, a workerd that only forwards requests grows to 327 MiB, with this to 116 MiB (bench/README.md).
 */
export const V8_FLAGS: readonly string[] = ['--max-semi-space-size=4']

/**
 * workerd's configuration: one Worker, its public sockets, which lead to entrypoint `Public` alone, and the gates of sandboxes, which
 * lead to `Gateway` alone. The Worker can connect to the sockets of the host and of the slots, to issuers, to upstreams of the
 * credential gateway and, with containers, to the egress proxy: each through its own binding.
 */
export function describeWorkerd(plan: ControlPlan): Config {
  const { containers } = plan
  return {
    v8Flags: [...V8_FLAGS],
    services: [
      {
        name: 'control',
        worker: {
          modules: [{ name: 'control.mjs', esModule: plan.script }],
          compatibilityDate: COMPATIBILITY_DATE,
          compatibilityFlags: COMPATIBILITY_FLAGS,
          bindings: bindings(plan),
          globalOutbound: { name: 'nowhere' },
          durableObjectNamespaces: OBJECTS.map(({ className, uniqueKey }) => ({
            className,
            uniqueKey,
            enableSql: true,
            ...(containers !== undefined &&
              uniqueKey === SANDBOX_OBJECTS && { container: { imageName: containers.image } }),
          })),
          ...(containers !== undefined && describeEngine(containers)),
          durableObjectStorage: { localDisk: 'objects' },
        },
      },
      dial('host', plan.hostSocket),
      ...(plan.storeSocket === undefined ? [] : [dial('store', plan.storeSocket)]),
      ...(plan.storeNetwork === undefined ? [] : [{ name: 's3', network: plan.storeNetwork }]),
      ...(plan.spritesNetwork === undefined ? [] : [{ name: 'sprites', network: plan.spritesNetwork }]),
      ...plan.slots.map((socket, slot) => dial(nameOfSlot(slot), socket)),
      { name: 'issuers', network: describeNetwork(plan.issuerNetwork) },
      { name: 'upstreams', network: describeNetwork(plan.upstreamNetwork) },
      ...(containers === undefined ? [] : [describeOutside(containers.egressSocket)]),
      { name: 'nowhere', network: { allow: [], deny: ['0.0.0.0/0', '::/0'] } },
      { name: 'objects', disk: { path: plan.objects, writable: true } },
      { name: 'workbench', disk: { path: plan.workbench, writable: false } },
    ],
    sockets: [
      ...plan.listen.map((address, index) => describeSocket(address, index, plan)),
      ...plan.gates.map(describeGate),
    ],
    structuredLogging: true,
  }
}
