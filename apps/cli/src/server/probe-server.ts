import { HintedError } from '../errors/errors.ts'
import { isSecureUrl } from './address.ts'
import { originOf } from './known-servers.ts'

/** A running server on this machine responds well within this time. */
const PROBE_TIMEOUT_MS = 1_000

/** Reports whether a server is running at this address. */
export type Probe = (url: string) => Promise<boolean>

/** Requests the health endpoint, without a credential: another program may be listening there. */
export const probeServer: Probe = async (url) => {
  try {
    const response = await fetch(new URL('/healthz', url), {
      redirect: 'manual',
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    })
    const body: unknown = response.ok ? await response.json() : undefined
    return typeof body === 'object' && body !== null && 'status' in body && body.status === 'ok'
  } catch {
    // Nothing is listening, or not a Sandwire server.
    return false
  }
}

/** Probe when the first response takes longer: a server without TLS may never answer a handshake. */
const PROBE_AFTER_MS = 1_000

const PLAIN: Readonly<Record<string, string>> = { 'https:': 'http:', 'wss:': 'ws:' }

interface CheckOptions {
  readonly probe?: Probe
  /** True when the outcome is known and probing is pointless. */
  readonly isSettled?: () => boolean
}

/** The error for an https address of a server that only speaks plain HTTP. */
async function findPlainHttpError(address: URL, probe: Probe): Promise<HintedError | undefined> {
  const plain = PLAIN[address.protocol]
  if (plain === undefined) return undefined
  const instead = address.href.replace(address.protocol, plain)
  const origin = originOf(new URL(instead))
  const [isSecure, isPlain] = await Promise.all([probe(originOf(address)), probe(origin)])
  if (isSecure || !isPlain) return undefined
  const shown = `${address.protocol}//${address.host}`
  const typed = address.pathname === '/' ? instead.replace(/\/$/, '') : instead
  return new HintedError(
    'version_unsupported',
    `Cannot connect to ${shown}: the server uses ${plain.slice(0, -1)}, not ${address.protocol.slice(0, -1)}`,
    isSecureUrl(origin) ? `try ${typed}` : `try ${typed}, which is not encrypted`,
  )
}

/**
 * Runs a request. If it fails or gets no response soon because the server does not use TLS, aborts its signal and throws
 * an error with the plain HTTP address.
 */
export async function withPlainHttpCheck<T>(
  address: string,
  request: (plainHttp: AbortSignal) => Promise<T>,
  { probe = probeServer, isSettled = () => false }: CheckOptions = {},
): Promise<T> {
  const url = new URL(address)
  const plainHttp = new AbortController()
  const probePlainHttp = async (): Promise<void> => {
    const plain = isSettled() ? undefined : await findPlainHttpError(url, probe)
    if (plain !== undefined) plainHttp.abort(plain)
  }
  const timer = setTimeout(() => void probePlainHttp(), PROBE_AFTER_MS)
  try {
    return await request(plainHttp.signal)
  } catch (error) {
    if (plainHttp.signal.aborted) throw plainHttp.signal.reason
    // An abort by this program is not a connection error.
    const isConnectionError = error instanceof Error && !isSettled()
    throw (isConnectionError ? await findPlainHttpError(url, probe) : undefined) ?? error
  } finally {
    clearTimeout(timer)
  }
}
