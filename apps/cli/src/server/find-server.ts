import { UsageError } from '../errors/errors.ts'
import { findKnown, type KnownServer, originOf, readKnownServers } from './known-servers.ts'
import { parseAddress } from './address.ts'
import { type Probe, probeServer } from './probe-server.ts'
import { readToken, type TokenSources } from './token.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import { renewRefused, requireStoredBearer } from '../sign-in/stored-sign-in.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The server that a command uses. */
export interface FoundServer {
  readonly origin: string
  /** The address to show in commands. */
  readonly address: string
  /** The server is used without --url as well. */
  readonly isDefault: boolean
  /** A server of this machine that was found, not named. */
  readonly isLocal: boolean
  /** The token for each request; undefined when there is none. */
  readonly bearer: () => Promise<string | undefined>
  /** Replaces a token that the server refused before its expiry; false when it cannot. */
  readonly renew?: (refused: string) => Promise<boolean>
  readonly credential: CredentialKind
}

/** How requests to a server authenticate. */
export type ServerCredential = Pick<FoundServer, 'bearer' | 'renew' | 'credential'>

/** Source of a credential: an option or SBX_TOKEN, a stored sign-in, a redeemed share link, a server's token file. */
export type CredentialKind = 'none' | 'given' | 'signIn' | 'guest' | 'local'

/** Options that select the server and the credential. */
export interface ServerOptions {
  readonly url: string | undefined
  readonly token: string | undefined
  readonly tokenFile: string | undefined
  /** Use no credential. */
  readonly isAnonymous?: boolean
}

const NO_CREDENTIAL = { bearer: () => Promise.resolve(undefined), credential: 'none' } as const
const NO_SERVER_HINT = 'start one with npm start, name one with --url URL, or sign in: sbx-stdio login URL'

function knownServers(env: Environment): readonly KnownServer[] {
  const known = readKnownServers(env)
  if (!known.isOk) throw new UsageError(known.message, known.hint)
  return known.servers
}

/** Groups addresses by server; a server has one token file. */
function groupByServer(servers: readonly KnownServer[]): readonly (readonly string[])[] {
  const groups = Map.groupBy(servers, ({ tokenFile }) => tokenFile)
  return [...groups.values()].map((group) => group.map(({ url }) => url))
}

/** The first address of a server that responds. */
async function findRunning(urls: readonly string[], probe: Probe): Promise<string | undefined> {
  const results = await Promise.all(urls.map((url) => probe(url)))
  return urls.find((_, at) => results[at] === true)
}

/**
 * The only server of this machine, the only one of several that is running, or else the only one with a stored sign-in.
 * Remote servers are not probed: a slow response must not change which server a command uses.
 */
async function findDefault(
  env: Environment,
  probe: Probe,
): Promise<Pick<FoundServer, 'address' | 'isLocal'>> {
  const known = knownServers(env)
  const servers = groupByServer(known)
  const firsts = servers.flatMap((urls) => urls.slice(0, 1))
  const remote = new CredentialStore(env)
    .origins()
    .filter((origin) => findKnown(known, new URL(origin)) === undefined)
  const [only] = firsts
  if (only !== undefined && servers.length === 1 && remote.length === 0)
    return { address: only, isLocal: true }
  const found = await Promise.all(servers.map((urls) => findRunning(urls, probe)))
  const running = found.filter((url) => url !== undefined)
  const [first, second] = [...running, ...remote]
  if (first === undefined && only === undefined)
    throw new UsageError('No server found on this machine', NO_SERVER_HINT)
  if (first === undefined)
    throw new UsageError(`No server is running on this machine (tried ${firsts.join(', ')})`, NO_SERVER_HINT)
  if (second === undefined) return { address: first, isLocal: running.length > 0 }
  const what = remote.length === 0 ? 'Several servers are running' : 'There are several servers'
  throw new UsageError(
    `${what}: ${[...running, ...remote].join(', ')}`,
    'choose one with --url URL or SBX_URL',
  )
}

/**
 * Sources of the token for this address: an option or SBX_TOKEN, or else the file that a server of this machine listed
 * for exactly this origin. Throws `UsageError`.
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

/** Finds the credential for an address: given, stored by a sign-in, or the token file of a server of this machine. */
export function openCredential(
  url: URL,
  options: Pick<ServerOptions, 'token' | 'tokenFile'>,
  env: Environment,
): ServerCredential {
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
    // A token file may be replaced while this runs. If it is gone, the earlier token is still used.
    const again = readToken(sources)
    return Promise.resolve(again.isOk ? again.token : first.token)
  }
  if (first.token === undefined) return { bearer, credential: 'none' }
  return { bearer, credential: isGiven(sources) ? 'given' : 'local' }
}

/** Finds the server of a command and its credential. Throws `UsageError`. */
export async function findServer(
  options: ServerOptions,
  env: Environment,
  probe: Probe = probeServer,
): Promise<FoundServer> {
  const named = options.url ?? (env['SBX_URL'] === '' ? undefined : env['SBX_URL'])
  const { address, isLocal } =
    named === undefined ? await findDefault(env, probe) : { address: named, isLocal: false }
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
