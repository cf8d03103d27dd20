import type { SocketHandler } from 'bun'
import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import type { IpAddress, Target } from '@sandwire/network-policy'
import { checkAddresses, type Refusal } from './policy.ts'
import { SocketEvents } from './socket-events.ts'
import type { PeerSocket } from './socket-writer.ts'

/** The addresses of a canonical name; throws when there are none. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** Where to connect to: an address that was checked, never a name. */
export interface Endpoint {
  readonly address: string
  readonly port: number
}

/** Opens a connection that stays half open when its peer ends its side. */
export type Dial = (endpoint: Endpoint, handlers: SocketHandler) => Promise<PeerSocket>

export type ConnectResult =
  | { readonly is: 'open'; readonly socket: PeerSocket; readonly events: SocketEvents }
  | { readonly is: 'refused'; readonly refusal: Refusal }
  | { readonly is: 'failed'; readonly message: string }

export interface ConnectOptions {
  readonly policy: (target: Target) => Refusal | undefined
  readonly resolve: Resolve
  readonly dial: Dial
  /** Addresses of this machine. */
  readonly ownAddresses: () => readonly string[]
}

const RESOLVE_TIMEOUT_MS = 10_000
const DIAL_TIMEOUT_MS = 8_000
/** Addresses of one name that are tried, one after the other. */
const MAX_DIALLED = 3

/** Asks the machine's resolver. The dot at the end keeps its search list out of it. */
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

/** Decides about a target and connects to it. The name is resolved once, and what was checked is what is dialled. */
export async function reach(
  target: Target,
  { policy, resolve, dial, ownAddresses }: ConnectOptions,
): Promise<ConnectResult> {
  const { host, port } = target
  // First, because no list would help: advice to allow it would be wrong.
  if (host.kind === 'address' && checkAddresses([host.address.text], ownAddresses()) === undefined)
    return { is: 'refused', refusal: 'address_refused' }
  const refusal = policy(target)
  if (refusal !== undefined) return { is: 'refused', refusal }
  const found =
    host.kind === 'address'
      ? [host.address.text]
      : await withinMs(RESOLVE_TIMEOUT_MS, resolve(host.name), () => undefined)
  if (found === undefined || found.length === 0)
    return { is: 'failed', message: 'the name cannot be resolved' }
  const addresses = checkAddresses(found, ownAddresses())
  if (addresses === undefined) return { is: 'refused', refusal: 'address_refused' }
  for (const { text } of firstOfEachFamily(addresses)) {
    const events = new SocketEvents()
    const dialled = dial({ address: text, port }, events.handlers)
    const socket = await withinMs(DIAL_TIMEOUT_MS, dialled, (late) => late.terminate())
    if (socket !== undefined) return { is: 'open', socket, events }
  }
  return { is: 'failed', message: 'it does not answer' }
}

/** A few addresses with both families among them, since one family may not work here at all. */
function firstOfEachFamily(addresses: readonly IpAddress[]): readonly IpAddress[] {
  const [first] = addresses
  const other = addresses.find(({ bytes }) => bytes.length !== first?.bytes.length)
  const rest = addresses.filter((address) => address !== first && address !== other)
  return [first, other, ...rest].filter((address) => address !== undefined).slice(0, MAX_DIALLED)
}
