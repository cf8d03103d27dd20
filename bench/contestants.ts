import type { Mode, Peer, Service } from './peers/stream.ts'
import type { Absent, Contestant } from './row.ts'

/** Turns a peer into a contestant that measures with one service for all rounds. */
export async function openPeer(
  peer: Peer,
  command: { readonly argv: readonly [string, ...string[]]; readonly mode: Mode },
  measure: (service: Service) => Promise<number>,
): Promise<Contestant | Absent> {
  if (peer.obstacle !== undefined) return { name: peer.name, absent: peer.obstacle }
  if (!peer.modes.includes(command.mode)) return { name: peer.name, absent: `has no ${command.mode} mode` }
  const service = await peer.serve(command.argv, command.mode)
  return {
    name: peer.name,
    side: peer.name.startsWith('sandwire') ? 'ours' : 'peer',
    measure: () => measure(service),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** A contestant that needs nothing kept open. */
export function openControl(name: string, measure: () => Promise<number>): Contestant {
  return { name, side: 'control', measure, [Symbol.asyncDispose]: async () => {} }
}
