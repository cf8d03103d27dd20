import { slotBindingName } from '@sandwire/internal-api'
import { type IssuerConfig } from '@sandwire/operator-settings'
import type { Config, Service, Socket, Worker, Worker_Binding } from 'miniflare'
import type { Keys } from '../data/keys.ts'
import type { Containers } from '../settings/containers.ts'
import type { ListenSettings } from '../settings/listen.ts'
import type { Secrets } from '../settings/secrets.ts'
import { describeIssuerNetwork, type IssuerNetwork } from './issuer-network.ts'

/** What control is told about this machine, as the JSON of binding `SANDWIRE_CONFIG`. */
export interface ControlConfig {
  readonly mode: ListenSettings['mode']
  readonly issuers: readonly IssuerConfig[]
  readonly publicOrigins: readonly string[]
  /** Absent: none. */
  readonly embedOrigins?: readonly string[]
  readonly hosts: readonly string[]
  /** Where a proxy on this machine says who is behind it. */
  readonly clientAddressHeader?: string
  /** Absent: nobody is this machine's user. */
  readonly localTokenSha256?: string
  readonly sleepAfterMs: number
  readonly alarmMs: number
  readonly maxSandboxes: number
  readonly provider: 'host' | 'container'
  readonly workspaceMode: 'sandboxes' | 'local'
  /** Codings that the workbench's files lie beside themselves in; absent: none. */
  readonly assetCodings?: readonly ('br' | 'gzip')[]
}

/** Everything workerd needs to run control. */
export interface ControlPlan {
  /** Bundle of the Worker, as text. */
  readonly script: string
  readonly control: ControlConfig
  readonly keys: Pick<Keys, 'signingKey' | 'idKey' | 'sessionTokenSecret'>
  readonly secrets: Secrets
  /** How far control gets to ask issuers. */
  readonly issuerNetwork: IssuerNetwork
  /** What the public sockets speak TLS with; absent: they do not. */
  readonly tls?: ListenSettings['tls']
  /** `HOST:PORT` of every public socket. */
  readonly listen: readonly string[]
  /** Unix socket of the host API. */
  readonly hostSocket: string
  /** Unix sockets of the slots, in their order; a socket is there while a sandbox has the slot. */
  readonly slots: readonly string[]
  /** What sandboxes are made of; absent: the host makes them. */
  readonly containers?: Containers
  /** Folder of the objects' databases. */
  readonly objects: string
  /** Folder with the files of the workbench. */
  readonly workbench: string
}

/** The platform's behavior is pinned with control's code. */
const COMPATIBILITY_DATE = '2026-07-01'
/**
 * Compressed messages could unpack to more than their size promises; and a request whose client went away says so, so that
 * what was stopRequested of a sandbox for it ends too.
 */
const COMPATIBILITY_FLAGS = ['no_web_socket_compression', 'enable_request_signal']

/** Names a proxy would use to speak of the client. Without one, whoever sends them makes them up. */
const CLAIMED_HEADERS = [
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-ipcountry',
  'cf-pseudo-ipv4',
  'cf-ray',
  'cf-visitor',
  'cf-worker',
  'forwarded',
  'mf-cf-blob',
  'mf-original-url',
  'mf-route-override',
  'true-client-ip',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]

/** What sandboxes reach by way of control: nothing of this machine or its own network, whatever name leads there. */
const PUBLIC_NETWORK = describeIssuerNetwork({ hasIssuers: true, privateAddresses: [] })

/** Folder of the sandboxes' databases. */
export const SANDBOX_OBJECTS = 'sandbox'

/** Each class has databases of its own under `uniqueKey`, which therefore never changes. */
const OBJECTS = [
  { binding: 'SANDBOX', className: 'SandboxObject', uniqueKey: SANDBOX_OBJECTS },
  { binding: 'ACCOUNT', className: 'AccountObject', uniqueKey: 'account' },
]

function nameOfSlot(slot: number): string {
  return `slot-${slot}`
}

/** A unix socket as a service that speaks HTTP. */
function dial(name: string, socket: string): Service {
  return { name, external: { address: `unix:${socket}`, http: {} } }
}

function bindings(plan: ControlPlan): Worker_Binding[] {
  const { secrets } = plan
  return [
    { name: 'HOST', service: { name: 'host' } },
    { name: 'ASSETS', service: { name: 'workbench' } },
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
    ...(plan.containers === undefined ? [] : [{ name: 'OUTSIDE', service: { name: 'outside' } }]),
    ...OBJECTS.map(({ binding, className }) => ({
      name: binding,
      durableObjectNamespace: { className },
    })),
  ]
}

/** The engine and what workerd puts beside each container. */
function describeEngine({ socket, egressImage }: Containers): Pick<Worker, 'containerEngine'> {
  return {
    containerEngine: {
      localDocker: { socketPath: `unix://${socket}`, containerEgressInterceptorImage: egressImage },
    },
  }
}

/** A door for the public; nothing that a client says about itself in a header gets through it. */
function describeSocket(address: string, index: number, { tls, control }: ControlPlan): Socket {
  const dropped = CLAIMED_HEADERS.filter((name) => name !== control.clientAddressHeader)
  const options = { injectRequestHeaders: dropped.map((name) => ({ name })) }
  const door = { name: `public-${index}`, address, service: { name: 'control', entrypoint: 'Public' } }
  return tls === undefined
    ? { ...door, http: options }
    : { ...door, https: { options, tlsOptions: { keypair: { ...tls } } } }
}

/**
 * Configuration of workerd: one Worker, its public sockets, and nothing a development server would add. A public socket leads to
 * entrypoint `Public` alone; the Worker dials the sockets of the host and of the slots, and no network but that of issuers and,
 * for sandboxes in containers, the public one: each through a binding that only the code that needs it uses.
 */
export function describeWorkerd(plan: ControlPlan): Config {
  const { containers } = plan
  return {
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
      ...plan.slots.map((socket, slot) => dial(nameOfSlot(slot), socket)),
      { name: 'issuers', network: describeIssuerNetwork(plan.issuerNetwork) },
      ...(containers === undefined ? [] : [{ name: 'outside', network: PUBLIC_NETWORK }]),
      { name: 'nowhere', network: { allow: [], deny: ['0.0.0.0/0', '::/0'] } },
      { name: 'objects', disk: { path: plan.objects, writable: true } },
      { name: 'workbench', disk: { path: plan.workbench, writable: false } },
    ],
    sockets: plan.listen.map((address, index) => describeSocket(address, index, plan)),
    structuredLogging: true,
  }
}
