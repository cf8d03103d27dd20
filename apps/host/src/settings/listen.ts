import { isIP } from 'node:net'
import { findEmbedOriginProblem, MAX_EMBED_ORIGINS } from '@sandwire/operator-settings'
import { type Environment, read } from './input.ts'

/** Where the server listens, and its public origin. */
export interface ListenSettings {
  /** Addresses to listen on; all but the first are optional. */
  readonly addresses: readonly string[]
  /** `local`: loopback only. `open`: other machines too, so every user must authenticate with an issuer. */
  readonly mode: 'local' | 'open'
  /** Public origin; absent: loopback. */
  readonly publicOrigin?: string
  /** Origins of pages that may embed terminals. */
  readonly embedOrigins?: readonly string[]
  /** Header in which a proxy passes the client's address, in lower case. */
  readonly clientAddressHeader?: string
  /** Certificate and key, PEM; absent: a proxy terminates TLS. */
  readonly tls?: { readonly certificateChain: string; readonly privateKey: string }
}

export interface ListenContext {
  readonly env: Environment
  /** Reads a file that need not be private; undefined when missing. */
  readonly readFile: (file: string) => string | undefined
  readonly readSecretFile: (file: string) => string
  /** True when users other than the local one can authenticate. */
  readonly hasIdentity: boolean
}

const LOOPBACK: Readonly<Record<string, readonly string[]>> = {
  localhost: ['127.0.0.1', '::1'],
  '127.0.0.1': ['127.0.0.1'],
  '::1': ['::1'],
  '[::1]': ['::1'],
}
const NO_IDENTITY =
  'no authentication is configured for other users; set SANDWIRE_ISSUER, JWT_SECRET or API_TOKEN'

function isLoopbackName(hostname: string): boolean {
  return Object.hasOwn(LOOPBACK, hostname)
}

function validateBind({ env, hasIdentity }: ListenContext, problems: string[]): readonly string[] {
  const text = read(env, 'SANDWIRE_BIND') ?? 'localhost'
  const loopback = Object.hasOwn(LOOPBACK, text) ? LOOPBACK[text] : undefined
  if (loopback !== undefined) return loopback
  const address = text.replace(/^\[(.*)\]$/, '$1')
  if (isIP(address) === 0)
    problems.push(`SANDWIRE_BIND is "${text}": not an IP address, such as 127.0.0.1 or 0.0.0.0`)
  else if (!hasIdentity) problems.push(`SANDWIRE_BIND is "${text}": ${NO_IDENTITY}, or listen on 127.0.0.1`)
  return [address]
}

function validatePublicUrl({ env, hasIdentity }: ListenContext, problems: string[]): URL | undefined {
  const text = read(env, 'SANDWIRE_PUBLIC_URL')
  if (text === undefined) return undefined
  const refuse = (why: string): undefined => void problems.push(`SANDWIRE_PUBLIC_URL is "${text}": ${why}`)
  if (!URL.canParse(text)) return refuse('not an origin, such as https://sandwire.example')
  const url = new URL(text)
  // A path, query or user would be ignored, so the value is a mistake.
  if (url.origin === 'null' || url.href !== `${url.origin}/`)
    return refuse('use an origin without a path, such as https://sandwire.example')
  const isLoopback = isLoopbackName(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback))
    return refuse('must use https, because credentials are sent to it')
  if (!isLoopback && !hasIdentity) return refuse(NO_IDENTITY)
  return url
}

function validateTls(
  { env, readFile, readSecretFile }: ListenContext,
  problems: string[],
): ListenSettings['tls'] {
  const certificate = read(env, 'SANDWIRE_TLS_CERT')
  const key = read(env, 'SANDWIRE_TLS_KEY')
  if (certificate === undefined && key === undefined) return undefined
  if (certificate === undefined || key === undefined) {
    problems.push('SANDWIRE_TLS_CERT and SANDWIRE_TLS_KEY must be set together')
    return undefined
  }
  const load = (
    variable: string,
    file: string,
    open: (file: string) => string | undefined,
    kind: string,
  ): string => {
    try {
      const text = open(file)
      if (text === undefined) throw new Error('no such file, or this user cannot read it')
      if (text.includes('-----BEGIN ') && text.includes(kind)) return text
      problems.push(`${variable} is "${file}": it contains no PEM ${kind.toLowerCase()}`)
    } catch (error) {
      const why = error instanceof Error ? error.message : 'it cannot be read'
      problems.push(`${variable} is "${file}": ${why}`)
    }
    return ''
  }
  return {
    certificateChain: load('SANDWIRE_TLS_CERT', certificate, readFile, 'CERTIFICATE'),
    privateKey: load('SANDWIRE_TLS_KEY', key, readSecretFile, 'PRIVATE KEY'),
  }
}

function validateAddressHeader({ env }: ListenContext, problems: string[]): string | undefined {
  const text = read(env, 'SANDWIRE_CLIENT_ADDRESS_HEADER')?.toLowerCase()
  if (text === undefined || /^[a-z0-9-]{1,64}$/.test(text)) return text
  problems.push(`SANDWIRE_CLIENT_ADDRESS_HEADER is "${text}": not a header name, such as X-Forwarded-For`)
  return undefined
}

/** Separated by spaces or commas, each as browsers send it. */
function validateEmbedOrigins({ env }: ListenContext, problems: string[]): readonly string[] {
  const all = (read(env, 'SANDWIRE_EMBED_ORIGINS') ?? '').split(/[\s,]+/).filter((text) => text !== '')
  for (const text of all) {
    const problem = findEmbedOriginProblem(text)
    if (problem !== undefined) problems.push(`SANDWIRE_EMBED_ORIGINS has "${text}": ${problem}`)
  }
  if (all.length > MAX_EMBED_ORIGINS)
    problems.push(
      `SANDWIRE_EMBED_ORIGINS has ${all.length} origins: at most ${MAX_EMBED_ORIGINS} are allowed`,
    )
  return [...new Set(all)]
}

/** Validates listen addresses, public origin and TLS. */
export function validateListenSettings(context: ListenContext, problems: string[]): ListenSettings {
  const addresses = validateBind(context, problems)
  const publicUrl = validatePublicUrl(context, problems)
  const tls = validateTls(context, problems)
  const clientAddressHeader = validateAddressHeader(context, problems)
  const embedOrigins = validateEmbedOrigins(context, problems)
  const isBoundOpen = addresses.some((address) => !isLoopbackName(address))
  const isNamedOpen = publicUrl !== undefined && !isLoopbackName(publicUrl.hostname)
  if (isBoundOpen && read(context.env, 'SANDWIRE_PUBLIC_URL') === undefined)
    problems.push(
      'SANDWIRE_PUBLIC_URL is not set: set it to the public origin, such as https://sandwire.example, which every request is checked against',
    )
  if (tls !== undefined && publicUrl?.protocol !== 'https:')
    problems.push('SANDWIRE_TLS_CERT requires an https SANDWIRE_PUBLIC_URL with the name of the certificate')
  return {
    addresses,
    mode: isBoundOpen || isNamedOpen ? 'open' : 'local',
    ...(embedOrigins.length > 0 && { embedOrigins }),
    ...(publicUrl !== undefined && { publicOrigin: publicUrl.origin }),
    ...(clientAddressHeader !== undefined && { clientAddressHeader }),
    ...(tls !== undefined && { tls }),
  }
}
