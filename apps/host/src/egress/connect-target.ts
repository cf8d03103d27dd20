import type { SocketHandler } from 'bun'
import { Resolver } from 'node:dns/promises'
import {
  type BlockReason,
  checkAddresses,
  type IpAddress,
  type Scheme,
  type Target,
} from '@sandwire/network-policy'
import { SocketEvents } from './socket-events.ts'
import type { PeerSocket } from './socket-writer.ts'

/** Resolves a name to its addresses, until `signal` aborts. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>

/** A checked address to connect to, never a name. */
export interface Endpoint {
  readonly address: string
  readonly port: number
  /** Name in the target's certificate; absent: no TLS. */
  readonly tlsName?: string
}

/** Opens a connection with half-open allowed. */
export type Dial = (endpoint: Endpoint, handlers: SocketHandler) => Promise<PeerSocket>

export type ConnectResult =
  | { readonly kind: 'open'; readonly socket: PeerSocket; readonly events: SocketEvents }
  | { readonly kind: 'blocked'; readonly reason: BlockReason }
  | { readonly kind: 'failed'; readonly message: string }

export interface ConnectOptions {
  readonly checkPolicy: (target: Target) => BlockReason | undefined
  readonly resolve: Resolve
  readonly dial: Dial
  /** Addresses and networks of this machine. */
  readonly ownAddresses: () => readonly string[]
}

const RESOLVE_TIMEOUT_MS = 10_000
const DIAL_TIMEOUT_MS = 8_000
/** Addresses of one name that are tried in order. */
const MAX_DIALED = 3

/**
 * Asks the machine's name servers. There is one resolver per lookup, because canceling ends all queries of a resolver; and it needs no
 * thread, unlike getaddrinfo, so that a name server that does not answer delays only its own names.
 */
export async function resolveName(
  name: string,
  signal: AbortSignal,
  servers?: readonly string[],
): Promise<readonly string[]> {
  const resolver = new Resolver()
  if (servers !== undefined) resolver.setServers([...servers])
  const cancel = (): void => resolver.cancel()
  signal.addEventListener('abort', cancel)
  try {
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    return found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

export function dialAddress(endpoint: Endpoint, handlers: SocketHandler): Promise<PeerSocket> {
  const { address, port, tlsName } = endpoint
  return tlsName === undefined
    ? Bun.connect<undefined>({ hostname: address, port, allowHalfOpen: true, socket: handlers })
    : dialSecurely({ address, port, tlsName }, handlers)
}

/** Opens a TLS connection; resolves when the certificate was verified. */
export async function dialSecurely(
  { address, port, tlsName }: Required<Endpoint>,
  handlers: SocketHandler,
  authorities?: string,
): Promise<PeerSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<PeerSocket>()
  const connected = await Bun.connect<undefined>({
    hostname: address,
    port,
    tls: {
      serverName: tlsName,
      ALPNProtocols: 'http/1.1',
      rejectUnauthorized: true,
      ...(authorities !== undefined && { ca: authorities }),
    },
    socket: {
      ...handlers,
      // The handlers pause the socket, so they must not have it before the handshake.
      open: () => undefined,
      handshake: (socket, isTrusted, error) => {
        if (isTrusted) {
          void handlers.open?.(socket)
          resolve(socket)
          return
        }
        reject(error ?? new Error('The TLS handshake failed'))
        socket.terminate()
      },
      close: (socket, error) => {
        reject(error ?? new Error('The connection was closed during the TLS handshake'))
        return handlers.close?.(socket, error)
      },
    },
  })
  const timer = setTimeout(() => connected.terminate(), DIAL_TIMEOUT_MS)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}

/** The promise's value, or undefined when it rejects or takes too long; a late value goes to `discard`. */
async function withinMs<T>(
  ms: number,
  promise: Promise<T>,
  discard: (late: T) => void,
): Promise<T | undefined> {
  const { promise: timeout, resolve: giveUp } = Promise.withResolvers<undefined>()
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    giveUp(undefined)
  }, ms)
  const settled = promise.then(
    (value) => {
      if (!isLate) return value
      discard(value)
      return undefined
    },
    () => undefined,
  )
  try {
    return await Promise.race([settled, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** The addresses of a name; undefined when they cannot be found in time or `signal` aborts. */
function resolveInTime(
  name: string,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(RESOLVE_TIMEOUT_MS)])
  return withinMs(RESOLVE_TIMEOUT_MS, resolve(name, either), () => undefined)
}

/**
 * Checks a target against the policy and connects to it, with TLS for `https`. The name is resolved once, and only checked addresses are
 * dialed. Gives up when `signal` aborts.
 */
export async function connectToTarget(
  target: Target & { readonly scheme?: Scheme },
  { checkPolicy, resolve, dial, ownAddresses }: ConnectOptions,
  signal: AbortSignal,
): Promise<ConnectResult> {
  const { host, port, scheme } = target
  const tls = scheme === 'https' ? { tlsName: host.kind === 'name' ? host.name : host.address.text } : {}
  // Before the policy: no allowlist can permit such an address, so the advice to add it would be wrong.
  if (host.kind === 'address' && checkAddresses([host.address.text], ownAddresses()) === undefined)
    return { kind: 'blocked', reason: 'address_refused' }
  const reason = checkPolicy(target)
  if (reason !== undefined) return { kind: 'blocked', reason }
  const found =
    host.kind === 'address' ? [host.address.text] : await resolveInTime(host.name, resolve, signal)
  if (found === undefined || found.length === 0)
    return { kind: 'failed', message: 'the name cannot be resolved' }
  const addresses = checkAddresses(found, ownAddresses())
  if (addresses === undefined) return { kind: 'blocked', reason: 'address_refused' }
  for (const { text } of pickAddresses(addresses)) {
    if (signal.aborted) break
    const events = new SocketEvents()
    const dialed = dial({ address: text, port, ...tls }, events.handlers)
    const socket = await withinMs(DIAL_TIMEOUT_MS, dialed, (late) => late.terminate())
    if (socket !== undefined) return { kind: 'open', socket, events }
  }
  return { kind: 'failed', message: 'the target does not respond' }
}

/** A few addresses, the first two of different families if possible, since one family may not work on this machine. */
function pickAddresses(addresses: readonly IpAddress[]): readonly IpAddress[] {
  const [first] = addresses
  const other = addresses.find(({ bytes }) => bytes.length !== first?.bytes.length)
  const rest = addresses.filter((address) => address !== first && address !== other)
  return [first, other, ...rest].filter((address) => address !== undefined).slice(0, MAX_DIALED)
}
