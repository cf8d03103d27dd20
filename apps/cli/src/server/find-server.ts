import { UsageError } from '../options/words.ts'
import { findKnown, type KnownServer, originOf, readKnownServers } from './known-servers.ts'
import { parseAddress } from './address.ts'
import { readToken, type TokenSources } from './token.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import { renewRefused, requireStoredBearer } from '../sign-in/stored-sign-in.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** A server to talk to. */
export interface ServerAccess {
  readonly origin: string
  /** The address as it is best typed again. */
  readonly address: string
  /** It would be found again without being named. */
  readonly isDefault: boolean
  /** A server of this machine that was found, not named. */
  readonly isLocal: boolean
  /** The token for each request; undefined when there is none. */
  readonly bearer: () => Promise<string | undefined>
  /** Makes another token of one that the server refused before its end; whether there is one now. */
  readonly renew?: (refused: string) => Promise<boolean>
  readonly credential: CredentialKind
}

/** How to be let in at a server. */
export type Access = Pick<ServerAccess, 'bearer' | 'renew' | 'credential'>

/**
 * Where the credential for a server comes from: an option, a stored sign-in, a link that somebody shared, the file of a
 * server of this machine.
 */
export type CredentialKind = 'none' | 'given' | 'signIn' | 'guest' | 'own'

/** Options that say which server and how to be let in. */
export interface ServerOptions {
  readonly url: string | undefined
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  /** No credential is looked for. */
  readonly isAnonymous?: boolean
}

const NO_CREDENTIAL = { bearer: () => Promise.resolve(undefined), credential: 'none' } as const
const START_ONE = 'start one with npm start, name one with --url URL, or sign in to one: sbx-stdio login URL'

function knownServers(env: Environment): readonly KnownServer[] {
  const known = readKnownServers(env)
  if (!known.isOk) throw new UsageError(known.message, known.hint)
  return known.servers
}

/** Addresses by server: those with one token file are one server's. */
function byServer(servers: readonly KnownServer[]): readonly (readonly string[])[] {
  const groups = Map.groupBy(servers, ({ tokenFile }) => tokenFile)
  return [...groups.values()].map((group) => group.map(({ url }) => url))
}

/** The first address of a server that answers. */
async function runningAt(urls: readonly string[], probe: Probe): Promise<string | undefined> {
  const answers = await Promise.all(urls.map((url) => probe(url)))
  return urls.find((_, at) => answers[at] === true)
}

/**
 * The only server of this machine, the only one of several that runs (a list may hold some that have ended), or else the
 * only one that somebody signed in to. Those elsewhere are not tried: one that is slow to answer must not change whom a
 * command is for.
 */
async function onlyKnown(env: Environment, probe: Probe): Promise<Pick<ServerAccess, 'address' | 'isLocal'>> {
  const known = knownServers(env)
  const servers = byServer(known)
  const firsts = servers.flatMap((urls) => urls.slice(0, 1))
  const elsewhere = new CredentialStore(env)
    .origins()
    .filter((origin) => findKnown(known, new URL(origin)) === undefined)
  const [only] = firsts
  if (only !== undefined && servers.length === 1 && elsewhere.length === 0)
    return { address: only, isLocal: true }
  const found = await Promise.all(servers.map((urls) => runningAt(urls, probe)))
  const running = found.filter((url) => url !== undefined)
  const [first, second] = [...running, ...elsewhere]
  if (first === undefined && only === undefined)
    throw new UsageError('No server is known on this machine', START_ONE)
  if (first === undefined)
    throw new UsageError(`No server runs on this machine; known are ${firsts.join(', ')}`, START_ONE)
  if (second === undefined) return { address: first, isLocal: running.length > 0 }
  const what = elsewhere.length === 0 ? 'Several servers run' : 'There are several servers'
  throw new UsageError(
    `${what}: ${[...running, ...elsewhere].join(', ')}`,
    'choose one with --url URL or SBX_URL',
  )
}

/**
 * Where the token for this address comes from: what is given, or else the file that a server of this machine listed for
 * exactly this origin. Throws `UsageError`.
 */
export function tokenSources(
  url: URL,
  options: Pick<ServerOptions, 'token' | 'tokenFile'>,
  env: Environment,
): TokenSources {
  const environment = env['SBX_TOKEN'] === '' ? undefined : env['SBX_TOKEN']
  const given = { token: options.token, tokenFile: options.tokenFile, environment }
  return { ...given, knownFile: isGiven(given) ? undefined : findKnown(knownServers(env), url)?.tokenFile }
}

function isGiven({ token, tokenFile, environment }: TokenSources): boolean {
  return [token, tokenFile, environment].some((source) => source !== undefined)
}

/** How to be let in at this address: with what is given, or a stored sign-in, or the file of a server of this machine. */
export function openCredential(
  url: URL,
  options: Pick<ServerOptions, 'token' | 'tokenFile'>,
  env: Environment,
): Access {
  const sources = tokenSources(url, options, env)
  const origin = originOf(url)
  const store = new CredentialStore(env)
  const stored = isGiven(sources) ? undefined : store.read(origin)
  if (stored !== undefined)
    return {
      bearer: () => requireStoredBearer(store, origin),
      renew: (refused) => renewRefused(store, origin, refused),
      credential: stored.renewal === undefined ? 'guest' : 'signIn',
    }
  const first = readToken(sources)
  if (!first.isOk) throw new UsageError(first.message, first.hint)
  const bearer = (): Promise<string | undefined> => {
    // A token file may be renewed while this runs; one that is gone leaves the token that was there.
    const again = readToken(sources)
    return Promise.resolve(again.isOk ? again.token : first.token)
  }
  if (first.token === undefined) return { bearer, credential: 'none' }
  return { bearer, credential: isGiven(sources) ? 'given' : 'own' }
}

/** Finds the server that a command is for, and how to be let in there. Throws `UsageError`. */
export async function findServer(
  options: ServerOptions,
  env: Environment,
  probe: Probe = probeServer,
): Promise<ServerAccess> {
  const named = options.url ?? (env['SBX_URL'] === '' ? undefined : env['SBX_URL'])
  const { address, isLocal } =
    named === undefined ? await onlyKnown(env, probe) : { address: named, isLocal: false }
  const parsed = parseAddress(address)
  if (!parsed.isOk) throw new UsageError(parsed.message, parsed.hint)
  return {
    origin: originOf(parsed.url),
    address,
    isDefault: options.url === undefined,
    isLocal,
    ...(options.isAnonymous === true ? NO_CREDENTIAL : openCredential(parsed.url, options, env)),
  }
}

/** A server on this machine answers at once; one that does not within this time is not worth waiting for. */
const PROBE_MS = 1_000

/** Says whether a server runs at this address. */
export type Probe = (url: string) => Promise<boolean>

/** Asks the address for its health, without a credential: whoever listens there now may be somebody else. */
export const probeServer: Probe = async (url) => {
  try {
    const response = await fetch(new URL('/healthz', url), {
      redirect: 'manual',
      signal: AbortSignal.timeout(PROBE_MS),
    })
    const answer: unknown = response.ok ? await response.json() : undefined
    return typeof answer === 'object' && answer !== null && 'status' in answer && answer.status === 'ok'
  } catch {
    // Nobody listens, or not one of ours: told by the answer.
    return false
  }
}
