import { slotBindingName, decodeSessionKeys } from '@sandwire/internal-api'
import { type AccountIds, openAccountIds } from './auth/account-id.ts'
import { type LoginStates, openLoginStates } from './auth/login-state.ts'
import { openSessionTokens, type SessionTokens } from './auth/session-token.ts'
import { fromBase64 } from './bytes.ts'
import { type Ceilings, resolveCeilings } from './ceilings/ceilings.ts'
import { type Config, decodeConfig } from './config.ts'
import { type GatewayTokens, openGatewayTokens } from './credentials/grant-token.ts'
import type { Env } from './env.ts'
import { Buckets } from './http/buckets.ts'
import { UnreadFrames } from './conversation/unread-frames.ts'
import { createLog, type Log } from './log.ts'
import { Metrics } from './metrics.ts'
import { Breaker, Breakers } from './providers/breaker.ts'
import { containerHealth } from './providers/container/container.ts'
import { type ContainerContext, openContainer } from './providers/container/open-container.ts'
import { HostProvider } from './providers/host.ts'
import { measureProvider } from './providers/measured-provider.ts'
import { openSprites } from './providers/sprites/open-sprites.ts'
import { type IsolationOf, cacheIsolation } from './providers/isolation.ts'
import type { Provider } from './providers/provider.ts'
import { askEachRunning, compareWithRunning, type FindOutdated } from './providers/running.ts'
import { SandboxdMetrics } from './sandbox/sandboxd-metrics.ts'
import { type IdMint, openIdMint } from './sandbox/sandbox-id.ts'
import { openSigner, type Signer } from './signer.ts'
import { HostStore } from './versions/host-store.ts'
import { R2Store } from './versions/r2-store.ts'
import { ReadBudget } from './versions/read-budget.ts'
import { S3Store } from './versions/s3-store.ts'
import type { SegmentStore } from './versions/segment-store.ts'
import { VersionMetrics } from './versions/version-metrics.ts'

interface Keys {
  readonly signer: Signer
  readonly mint: IdMint
  readonly accounts: AccountIds
  readonly loginStates: LoginStates
  readonly gatewayTokens: GatewayTokens
  /** Undefined if no key is configured. */
  readonly sessionTokens: SessionTokens | undefined
}

/** Log lines of one sandbox about outbound requests, as the host limits them too. */
const EGRESS_LOG_LIMIT = { perSecond: 1, burst: 20, max: 1_000 }

/** Requests of one sandbox to the credential gateway. */
const GATEWAY_LIMIT = { perSecond: 50, burst: 500, max: 10_000 }
/** Those of them that are refused at once. Agents have valid tokens, and wait before they retry. */
const GATEWAY_REFUSAL_LIMIT = { perSecond: 1, burst: 20, max: 10_000 }

/** Frames that an account sends to conversations: more than people do. Each is stored and audited. */
const FRAME_LIMIT = { perSecond: 10, burst: 200, max: 1_000 }
/** Frames beyond that which are answered with an error. */
const REFUSED_FRAME_LIMIT = { perSecond: 1, burst: 100, max: 1_000 }

/** Shared by the worker and its objects in one isolate. */
export interface Runtime {
  readonly config: Config
  readonly ceilings: Ceilings
  readonly log: Log
  readonly metrics: Metrics
  readonly sandboxdMetrics: SandboxdMetrics
  readonly versionMetrics: VersionMetrics
  readonly breaker: Breaker
  /** Circuit breakers of workspaces, for this isolate. */
  readonly workspaceBreakers: Breakers
  /** The provider's health, for callers that are not a sandbox's object. */
  readonly provider: Pick<Provider, 'health'>
  /** The provider of a sandbox's object. */
  readonly providerOf: (context: ContainerContext) => Provider
  readonly isolationOf: IsolationOf
  readonly findOutdated: FindOutdated
  /** Where versions of files are stored; undefined: they are not saved. */
  readonly segments: SegmentStore | undefined
  /** What control reads of versions itself, by account. */
  readonly versionReads: ReadBudget
  /** Log lines about outbound requests, by sandbox. */
  readonly egressLogLimit: Buckets
  /** Requests to the credential gateway, by slot or sandbox. */
  readonly gatewayLimit: Buckets
  readonly gatewayRefusalLimit: Buckets
  /** What accounts send to conversations, and have not read of them. */
  readonly conversations: {
    readonly accepted: Buckets
    readonly refused: Buckets
    readonly unread: UnreadFrames
  }
  /** Tokens of GitHub App installations, until they expire. */
  readonly gitTokens: Map<string, { readonly token: string; readonly expiresMs: number }>
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly keys: () => Promise<Keys>
}

/** By environment, because class instances are created per request but the environment is not. */
const runtimes = new WeakMap<Env, Runtime>()

export function runtimeOf(env: Env): Runtime {
  const known = runtimes.get(env)
  if (known !== undefined) return known
  const made = createRuntime(env)
  runtimes.set(env, made)
  return made
}

async function openTokens(
  secret: string | undefined,
  { provider, sessionTokenMinutes }: Config,
): Promise<SessionTokens | undefined> {
  if (secret === undefined) return undefined
  return openSessionTokens(decodeSessionKeys(secret), {
    provider,
    lifeMs: sessionTokenMinutes * 60_000,
    random: (bytes) => crypto.getRandomValues(bytes),
  })
}

/** Decodes the settings. Logs the problem, because nothing is served with invalid settings. */
function readConfig(env: Env, log: Log): Config {
  try {
    return decodeConfig(env.SANDWIRE_CONFIG)
  } catch (error) {
    log.error('settings_invalid', { cause: String(error) })
    throw error
  }
}

/** Completes the operator's ceilings for this server. */
function ceilingsOf(config: Config, { JWT_SECRET, API_TOKEN }: Env, hasStore: boolean): Ceilings {
  const { mode, issuers, provider, maxSandboxes, sleepAfterMs } = config
  const hasSecrets = JWT_SECRET !== undefined || API_TOKEN !== undefined
  return resolveCeilings(config.ceilings, {
    machine: config.machine,
    isShared: mode === 'open' || issuers.length > 0 || hasSecrets,
    filesSurviveStop: provider !== 'container' || hasStore,
    maxSandboxes,
    idleSeconds: sleepAfterMs / 1000,
  })
}

/** The store of versions: an R2 bucket, a bucket of an S3-compatible service, or the host's folder. */
function openSegments(
  { FILES, S3, STORE, AWS_ACCESS_KEY_ID = '', AWS_SECRET_ACCESS_KEY = '' }: Env,
  { s3 }: Config,
  sleep: (ms: number) => Promise<void>,
): SegmentStore | undefined {
  if (FILES !== undefined) return new R2Store(FILES)
  if (s3 !== undefined && S3 !== undefined) {
    const credentials = { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY }
    const deps = { fetch: (request: Request) => S3.fetch(request), sleep, random: () => Math.random() }
    return new S3Store(s3, credentials, deps)
  }
  return STORE === undefined ? undefined : new HostStore((url, init) => STORE.fetch(url, init))
}

function failWithoutHost(): never {
  throw new Error('No host is configured')
}

function createRuntime(env: Env): Runtime {
  const nowMs = (): number => Date.now()
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  const metrics = new Metrics()
  const breaker = new Breaker()
  const measured = (kind: Config['provider'], provider: Provider): Provider =>
    measureProvider(provider, {
      nowMs,
      onCall: ({ call, elapsedMs, isOk }) => {
        const labels = { provider: kind, call }
        metrics.count('sandwire_provider_calls_total', { ...labels, outcome: isOk ? 'ok' : 'error' })
        metrics.count('sandwire_provider_seconds_total', labels, elapsedMs / 1000)
      },
    })
  const hostProvider = new HostProvider({
    fetchHost: (url, init) => (env.HOST === undefined ? failWithoutHost() : env.HOST.fetch(url, init)),
    findSlot: (slot) => env[slotBindingName(slot)],
    breaker,
    nowMs,
    sleep,
    random: () => Math.random(),
  })
  const host = measured('host', hostProvider)
  let opened: Keys | undefined
  const log = createLog((line) => console.log(line), nowMs)
  const config = readConfig(env, log)
  // Caches the value, not the promise, which belongs to the request that created it.
  const keys = async (): Promise<Keys> => {
    opened ??= {
      signer: await openSigner(env.SANDWIRE_SIGNING_KEY),
      mint: await openIdMint(fromBase64(env.SANDWIRE_ID_KEY), (bytes) => crypto.getRandomValues(bytes)),
      accounts: await openAccountIds(fromBase64(env.SANDWIRE_ID_KEY)),
      loginStates: await openLoginStates(fromBase64(env.SANDWIRE_ID_KEY)),
      gatewayTokens: await openGatewayTokens(fromBase64(env.SANDWIRE_ID_KEY)),
      sessionTokens: await openTokens(env.SESSION_TOKEN_SECRET, config),
    }
    return opened
  }
  const segments = openSegments(env, config, sleep)
  const containers = { health: async () => containerHealth() }
  const sprites =
    config.sprites === undefined
      ? undefined
      : openSprites({
          env,
          settings: config.sprites,
          breaker,
          signer: async () => (await keys()).signer,
          nowMs,
          sleep,
          count: (metric, labels, by) => metrics.count(metric, labels, by),
          log,
        })
  const maker = config.provider === 'host' ? host : (sprites?.health ?? containers)
  return {
    config,
    ceilings: ceilingsOf(config, env, segments !== undefined),
    log,
    metrics,
    sandboxdMetrics: new SandboxdMetrics(metrics, { nowMs, pollMs: config.alarmMs }),
    versionMetrics: new VersionMetrics(metrics, nowMs),
    breaker,
    workspaceBreakers: new Breakers(),
    // On one machine, the host knows whether the container engine is available.
    provider: env.HOST === undefined || sprites !== undefined ? maker : host,
    providerOf: (context) => {
      if (config.provider === 'host') return host
      return sprites === undefined
        ? measured('container', openContainer(context, { nowMs, sleep }))
        : measured('sprites', sprites.providerOf(context))
    },
    isolationOf: cacheIsolation(maker),
    findOutdated:
      config.provider === 'host'
        ? compareWithRunning((requestId) => hostProvider.running(requestId), nowMs)
        : askEachRunning(nowMs),
    segments,
    versionReads: new ReadBudget(nowMs),
    egressLogLimit: new Buckets(EGRESS_LOG_LIMIT),
    gatewayLimit: new Buckets(GATEWAY_LIMIT),
    gatewayRefusalLimit: new Buckets(GATEWAY_REFUSAL_LIMIT),
    conversations: {
      accepted: new Buckets(FRAME_LIMIT),
      refused: new Buckets(REFUSED_FRAME_LIMIT),
      unread: new UnreadFrames(),
    },
    gitTokens: new Map(),
    nowMs,
    sleep,
    keys,
  }
}
