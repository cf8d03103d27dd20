import { findKnown, type KnownServer, originOf, readKnownServers } from './known-servers.ts'
import { type Probe, probeServer } from './probe-server.ts'
import { parseAddress } from './server-address.ts'
import { readToken, type TokenSources } from './token.ts'
import { Wrong } from './words.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** A server to talk to. */
export interface FoundServer {
  readonly origin: string
  /** The address as it is best typed again. */
  readonly address: string
  /** It would be found again without being named. */
  readonly isDefault: boolean
  /** A server of this machine that was found, not named. */
  readonly isOwn: boolean
  readonly token: string | undefined
}

/** Options that say which server and how to be let in. */
export interface ServerOptions {
  readonly url: string | undefined
  readonly token: string | undefined
  readonly tokenFile: string | undefined
}

const START_ONE = 'start one with npm start, or name one with --url URL'

function knownServers(env: Environment): readonly KnownServer[] {
  const known = readKnownServers(env)
  if (!known.isOk) throw new Wrong(known.message, known.hint)
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

/** The only server of this machine, or the only one of several that runs: a list may hold some that have ended. */
async function onlyKnown(env: Environment, probe: Probe): Promise<string> {
  const servers = byServer(knownServers(env))
  const firsts = servers.flatMap((urls) => urls.slice(0, 1))
  const [only] = firsts
  if (only === undefined) throw new Wrong('No server is known on this machine', START_ONE)
  if (servers.length === 1) return only
  const found = await Promise.all(servers.map((urls) => runningAt(urls, probe)))
  const running = found.filter((url) => url !== undefined)
  const [first] = running
  if (first === undefined)
    throw new Wrong(`No server runs on this machine; known are ${firsts.join(', ')}`, START_ONE)
  if (running.length === 1) return first
  throw new Wrong(`Several servers run: ${running.join(', ')}`, 'choose one with --url URL or SBX_URL')
}

/**
 * Where the token for this address comes from: what is given, or else the file that a server of this machine listed for
 * exactly this origin. Throws `Wrong`.
 */
export function tokenSources(
  url: URL,
  options: Pick<ServerOptions, 'token' | 'tokenFile'>,
  env: Environment,
): TokenSources {
  const environment = env['SBX_TOKEN'] === '' ? undefined : env['SBX_TOKEN']
  const given = { token: options.token, tokenFile: options.tokenFile, environment }
  const isGiven = Object.values(given).some((source) => source !== undefined)
  return { ...given, knownFile: isGiven ? undefined : findKnown(knownServers(env), url)?.tokenFile }
}

/** Finds the server that a command is for, and the token for it. Throws `Wrong`. */
export async function findServer(
  options: ServerOptions,
  env: Environment,
  probe: Probe = probeServer,
): Promise<FoundServer> {
  const named = options.url ?? (env['SBX_URL'] === '' ? undefined : env['SBX_URL'])
  const address = named ?? (await onlyKnown(env, probe))
  const parsed = parseAddress(address)
  if (!parsed.isOk) throw new Wrong(parsed.message, parsed.hint)
  const reading = readToken(tokenSources(parsed.url, options, env))
  if (!reading.isOk) throw new Wrong(reading.message, reading.hint)
  return {
    origin: originOf(parsed.url),
    address,
    isDefault: options.url === undefined,
    isOwn: named === undefined,
    token: reading.token,
  }
}
