import { findKnown, type KnownServer, originOf, readKnownServers } from './known-servers.ts'
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
  readonly token: string | undefined
}

/** Options that say which server and how to be let in. */
export interface ServerOptions {
  readonly url: string | undefined
  readonly token: string | undefined
  readonly tokenFile: string | undefined
}

function knownServers(env: Environment): readonly KnownServer[] {
  const known = readKnownServers(env)
  if (!known.isOk) throw new Wrong(known.message, known.hint)
  return known.servers
}

/** The only server of this machine. Several addresses with one token file are one server. */
function onlyKnown(env: Environment): string {
  const servers = knownServers(env)
  const [first] = servers
  if (first === undefined)
    throw new Wrong(
      'No server is known on this machine',
      'start one with npm start, or name one with --url URL',
    )
  const files = new Set(servers.map(({ tokenFile }) => tokenFile))
  if (files.size === 1) return first.url
  const urls = servers.map(({ url }) => url).join(', ')
  throw new Wrong(`Several servers are known: ${urls}`, 'choose one with --url URL or SBX_URL')
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
export function findServer(options: ServerOptions, env: Environment): FoundServer {
  const named = options.url ?? (env['SBX_URL'] === '' ? undefined : env['SBX_URL'])
  const address = named ?? onlyKnown(env)
  const parsed = parseAddress(address)
  if (!parsed.isOk) throw new Wrong(parsed.message, parsed.hint)
  const reading = readToken(tokenSources(parsed.url, options, env))
  if (!reading.isOk) throw new Wrong(reading.message, reading.hint)
  return {
    origin: originOf(parsed.url),
    address,
    isDefault: options.url === undefined,
    token: reading.token,
  }
}
