import type { SocketHandler } from 'bun'
import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import type { IpAddress, Target } from '@sandwire/network-policy'
import { checkAddresses, type BlockReason } from './policy.ts'
import { SocketEvents } from './socket-events.ts'
import type { PeerSocket } from './socket-writer.ts'

/** Resolves a name to its addresses; throws when there are none. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** A checked address to connect to, never a name. */
export interface Endpoint {
  readonly address: string
  readonly port: number
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
  /** Addresses of this machine. */
  readonly ownAddresses: () => readonly string[]
}

const RESOLVE_TIMEOUT_MS = 10_000
const DIAL_TIMEOUT_MS = 8_000
/** Addresses of one name that are tried in order. */
const MAX_DIALED = 3

/** Uses the machine's resolver. The trailing dot bypasses its search list. */
export async function resolveName(name: string): Promise<readonly string[]> {
  return (await lookup(`${name}.`, { all: true })).map(({ address }) => address)
}

export function dialAddress({ address, port }: Endpoint, handlers: SocketHandler): Promise<PeerSocket> {
  return Bun.connect<undefined>({ hostname: address, port, allowHalfOpen: true, socket: handlers })
}

export function listOwnAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? [])
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

/** Checks a target against the policy and connects to it. The name is resolved once, and only checked addresses are dialed. */
export async function connectToTarget(
  target: Target,
  { checkPolicy, resolve, dial, ownAddresses }: ConnectOptions,
): Promise<ConnectResult> {
  const { host, port } = target
  // Before the policy: no allowlist can permit such an address, so the advice to add it would be wrong.
  if (host.kind === 'address' && checkAddresses([host.address.text], ownAddresses()) === undefined)
    return { kind: 'blocked', reason: 'address_refused' }
  const reason = checkPolicy(target)
  if (reason !== undefined) return { kind: 'blocked', reason }
  const found =
    host.kind === 'address'
      ? [host.address.text]
      : await withinMs(RESOLVE_TIMEOUT_MS, resolve(host.name), () => undefined)
  if (found === undefined || found.length === 0)
    return { kind: 'failed', message: 'the name cannot be resolved' }
  const addresses = checkAddresses(found, ownAddresses())
  if (addresses === undefined) return { kind: 'blocked', reason: 'address_refused' }
  for (const { text } of pickAddresses(addresses)) {
    const events = new SocketEvents()
    const dialed = dial({ address: text, port }, events.handlers)
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
