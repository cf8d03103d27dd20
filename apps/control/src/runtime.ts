import { slotBindingName, decodeSessionKeys } from '@sandwire/internal-api'
import { type AccountIds, openAccountIds } from './auth/account-id.ts'
import { type LoginStates, openLoginStates } from './auth/login-state.ts'
import { openSessionTokens, type SessionTokens } from './auth/session-token.ts'
import { fromBase64 } from './bytes.ts'
import { type Config, decodeConfig } from './config.ts'
import type { Env } from './env.ts'
import { createLog, type Log } from './log.ts'
import { Metrics } from './metrics.ts'
import { Breaker, Breakers } from './providers/breaker.ts'
import { containerHealth } from './providers/container/container.ts'
import { type ContainerContext, openContainer } from './providers/container/open-container.ts'
import { HostProvider } from './providers/host.ts'
import { type IsolationOf, rememberIsolation } from './providers/isolation.ts'
import type { Provider } from './providers/provider.ts'
import { type IdMint, openIdMint } from './sandbox/sandbox-id.ts'
import { openSigner, type Signer } from './signer.ts'

interface Keys {
  readonly signer: Signer
  readonly mint: IdMint
  readonly accounts: AccountIds
  readonly loginStates: LoginStates
  /** Undefined when nobody gave a key for them. */
  readonly sessionTokens: SessionTokens | undefined
}

/** What the worker and its objects share in one isolate: settings, keys, counters, the breaker. */
export interface Runtime {
  readonly config: Config
  readonly log: Log
  readonly metrics: Metrics
  readonly breaker: Breaker
  /** Which sandboxes do not answer requests about their files, as far as this isolate knows. */
  readonly workspaceBreakers: Breakers
  /** What makes sandboxes, to those who are none. */
  readonly provider: Pick<Provider, 'health'>
  /** What makes the sandbox of an object. */
  readonly providerOf: (place: ContainerContext) => Provider
  readonly isolationOf: IsolationOf
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly keys: () => Promise<Keys>
}

/** Requests come with fresh class instances, but with the same environment: what must outlive them hangs on it. */
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
  { sessionTokenMinutes }: Config,
): Promise<SessionTokens | undefined> {
  if (secret === undefined) return undefined
  return openSessionTokens(decodeSessionKeys(secret), {
    lifeMs: sessionTokenMinutes * 60_000,
    random: (bytes) => crypto.getRandomValues(bytes),
  })
}

/** Writes down why settings cannot be used: nothing is served with them, so nobody else could say it. */
function readConfig(env: Env, log: Log): Config {
  try {
    return decodeConfig(env.SANDWIRE_CONFIG)
  } catch (error) {
    log.error('settings_refused', { cause: String(error) })
    throw error
  }
}

function notHere(): never {
  throw new Error('There is no host here')
}

function createRuntime(env: Env): Runtime {
  const nowMs = (): number => Date.now()
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  const metrics = new Metrics()
  const breaker = new Breaker()
  const host = new HostProvider({
    askHost: (url, init) => (env.HOST === undefined ? notHere() : env.HOST.fetch(url, init)),
    findSlot: (slot) => env[slotBindingName(slot)],
    breaker,
    nowMs,
    sleep,
    random: () => Math.random(),
    onCall: (call, elapsedMs, isOk) => {
      metrics.count('sandwire_provider_calls_total', { call, outcome: isOk ? 'ok' : 'error' })
      metrics.count('sandwire_provider_seconds_total', { call }, elapsedMs / 1000)
    },
  })
  let opened: Keys | undefined
  const log = createLog((line) => console.log(line), nowMs)
  const config = readConfig(env, log)
  const containers = { health: async () => containerHealth() }
  const maker = config.provider === 'host' ? host : containers
  return {
    config,
    log,
    metrics,
    breaker,
    workspaceBreakers: new Breakers(),
    // On one machine, the host knows whether the engine of containers is there.
    provider: env.HOST === undefined ? maker : host,
    providerOf: (place) => (config.provider === 'host' ? host : openContainer(place, { nowMs, sleep })),
    isolationOf: rememberIsolation(maker),
    nowMs,
    sleep,
    // The value is kept, not the promise: a promise belongs to the request that made it.
    async keys() {
      opened ??= {
        signer: await openSigner(env.SANDWIRE_SIGNING_KEY),
        mint: await openIdMint(fromBase64(env.SANDWIRE_ID_KEY), (bytes) => crypto.getRandomValues(bytes)),
        accounts: await openAccountIds(fromBase64(env.SANDWIRE_ID_KEY)),
        loginStates: await openLoginStates(fromBase64(env.SANDWIRE_ID_KEY)),
        sessionTokens: await openTokens(env.SESSION_TOKEN_SECRET, config),
      }
      return opened
    },
  }
}
