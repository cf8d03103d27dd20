import { isIP } from 'node:net'
import { findEmbedOriginProblem, MAX_EMBED_ORIGINS } from '@sandwire/operator-settings'
import { type Environment, read } from './input.ts'

/** Who can get to this server, and under which name. */
export interface ListenSettings {
  /** Addresses to listen on; those but the first only where the machine has them. */
  readonly addresses: readonly string[]
  /** `local`: this machine alone. `open`: others too, so everybody has to show who they are. */
  readonly mode: 'local' | 'open'
  /** Origin that people use; absent: loopback. */
  readonly publicOrigin?: string
  /** Origins of other people's pages that may hold terminals of this server; absent: none. */
  readonly embedOrigins?: readonly string[]
  /** Where a proxy on this machine says who is behind it, in small letters. */
  readonly clientAddressHeader?: string
  /** What TLS is spoken with, in PEM; absent: none, so a public origin means a proxy in front. */
  readonly tls?: { readonly certificateChain: string; readonly privateKey: string }
}

export interface ListenContext {
  readonly env: Environment
  /** Text of a file that anybody may know; undefined when there is none. */
  readonly readFile: (file: string) => string | undefined
  readonly readSecretFile: (file: string) => string
  /** Whether anything but the local identity says who people are. */
  readonly hasIdentity: boolean
}

const LOOPBACK: Readonly<Record<string, readonly string[]>> = {
  localhost: ['127.0.0.1', '::1'],
  '127.0.0.1': ['127.0.0.1'],
  '::1': ['::1'],
  '[::1]': ['::1'],
}
const NO_IDENTITY =
  'nobody but this machine’s user could be told apart; set SANDWIRE_ISSUER (or JWT_SECRET, or API_TOKEN)'

function isLoopbackName(hostname: string): boolean {
  return Object.hasOwn(LOOPBACK, hostname)
}

function validateBind({ env, hasIdentity }: ListenContext, problems: string[]): readonly string[] {
  const text = read(env, 'SANDWIRE_BIND') ?? 'localhost'
  const loopback = Object.hasOwn(LOOPBACK, text) ? LOOPBACK[text] : undefined
  if (loopback !== undefined) return loopback
  const address = text.replace(/^\[(.*)\]$/, '$1')
  if (isIP(address) === 0)
    problems.push(`SANDWIRE_BIND is "${text}": give an IP address, such as 127.0.0.1 or 0.0.0.0, or unset it`)
  else if (!hasIdentity) problems.push(`SANDWIRE_BIND is "${text}": ${NO_IDENTITY}, or listen on 127.0.0.1`)
  return [address]
}

function validatePublicUrl({ env, hasIdentity }: ListenContext, problems: string[]): URL | undefined {
  const text = read(env, 'SANDWIRE_PUBLIC_URL')
  if (text === undefined) return undefined
  const refuse = (why: string): undefined => void problems.push(`SANDWIRE_PUBLIC_URL is "${text}": ${why}`)
  if (!URL.canParse(text)) return refuse('give an origin, such as https://sandwire.example')
  const url = new URL(text)
  // A path, a query or a user in it would be dropped, so it must be meant otherwise.
  if (url.origin === 'null' || url.href !== `${url.origin}/`)
    return refuse('give an origin alone, such as https://sandwire.example')
  const isLoopback = isLoopbackName(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback))
    return refuse('it must be https, because credentials travel there')
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
    problems.push('SANDWIRE_TLS_CERT and SANDWIRE_TLS_KEY belong together: set both, or neither')
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
      if (text === undefined) throw new Error('there is no such file, or this user may not see it')
      if (text.includes('-----BEGIN ') && text.includes(kind)) return text
      problems.push(`${variable} is "${file}": it holds no ${kind.toLowerCase()} in PEM`)
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
  problems.push(
    `SANDWIRE_CLIENT_ADDRESS_HEADER is "${text}": give the name of a header, such as X-Forwarded-For`,
  )
  return undefined
}

/** Separated by spaces or commas, each exactly as browsers send it. */
function validateEmbedOrigins({ env }: ListenContext, problems: string[]): readonly string[] {
  const all = (read(env, 'SANDWIRE_EMBED_ORIGINS') ?? '').split(/[\s,]+/).filter((text) => text !== '')
  for (const text of all) {
    const problem = findEmbedOriginProblem(text)
    if (problem !== undefined) problems.push(`SANDWIRE_EMBED_ORIGINS has "${text}": ${problem}`)
  }
  if (all.length > MAX_EMBED_ORIGINS)
    problems.push(`SANDWIRE_EMBED_ORIGINS has ${all.length} origins: give at most ${MAX_EMBED_ORIGINS}`)
  return [...new Set(all)]
}

/** Judges where the server listens and what people call it. */
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
      'SANDWIRE_PUBLIC_URL is not set: give the origin that people use, such as https://sandwire.example, since every request is checked against it',
    )
  if (tls !== undefined && publicUrl?.protocol !== 'https:')
    problems.push(
      'SANDWIRE_TLS_CERT needs SANDWIRE_PUBLIC_URL with https: give the name that the certificate is for',
    )
  return {
    addresses,
    mode: isBoundOpen || isNamedOpen ? 'open' : 'local',
    ...(embedOrigins.length > 0 && { embedOrigins }),
    ...(publicUrl !== undefined && { publicOrigin: publicUrl.origin }),
    ...(clientAddressHeader !== undefined && { clientAddressHeader }),
    ...(tls !== undefined && { tls }),
  }
}
