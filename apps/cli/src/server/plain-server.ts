import { HintedError } from '../errors/errors.ts'
import { isSecureUrl } from './address.ts'
import { originOf } from './known-servers.ts'
import { type Probe, probeServer } from './find-server.ts'

/** A first answer that takes longer is looked into: a server without TLS may never answer a handshake. */
const PROBE_AFTER_MS = 1_000

const PLAIN: Readonly<Record<string, string>> = { 'https:': 'http:', 'wss:': 'ws:' }

interface Doubts {
  readonly probe?: Probe
  /** There is nothing to find out any more. */
  readonly isSettled?: () => boolean
}

/** What is wrong with an address that asks for TLS, where the server answers without it and not with it. */
async function explainPlain(address: URL, probe: Probe): Promise<HintedError | undefined> {
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
    `Cannot talk to ${shown}: it speaks ${plain.slice(0, -1)} there, not ${address.protocol.slice(0, -1)}`,
    isSecureUrl(origin) ? `try ${typed}` : `try ${typed}, over which others can read along`,
  )
}

/**
 * Asks a server for something. Where it does not answer soon, or fails, and the reason is that it speaks no TLS, the
 * signal is aborted and that is thrown, with the address that works.
 */
export async function withPlainHttpCheck<T>(
  address: string,
  ask: (plainHttp: AbortSignal) => Promise<T>,
  { probe = probeServer, isSettled = () => false }: Doubts = {},
): Promise<T> {
  const url = new URL(address)
  const plainHttp = new AbortController()
  const lookInto = async (): Promise<void> => {
    const plain = isSettled() ? undefined : await explainPlain(url, probe)
    if (plain !== undefined) plainHttp.abort(plain)
  }
  const timer = setTimeout(() => void lookInto(), PROBE_AFTER_MS)
  try {
    return await ask(plainHttp.signal)
  } catch (error) {
    if (plainHttp.signal.aborted) throw plainHttp.signal.reason
    // What is thrown by a signal of this program is no error of the connection.
    const isFault = error instanceof Error && !isSettled()
    throw (isFault ? await explainPlain(url, probe) : undefined) ?? error
  } finally {
    clearTimeout(timer)
  }
}
