import type { Mode, Peer, Service } from './peers/stream.ts'
import type { Absent, Competitor } from './row.ts'

export interface Command {
  readonly argv: readonly [string, ...string[]]
  readonly mode: Mode
  /** Files that the command names. */
  readonly files?: readonly string[]
}

/** Starts a peer once for all rounds. A peer that does not start is reported as absent. */
export async function openPeer(
  peer: Peer,
  command: Command,
  measure: (service: Service) => Promise<number>,
): Promise<Competitor | Absent> {
  if (peer.problem !== undefined) return { name: peer.name, absent: peer.problem }
  if (!peer.modes.includes(command.mode)) return { name: peer.name, absent: `has no ${command.mode} mode` }
  try {
    const service = await peer.serve(command.argv, command.mode, command.files)
    return {
      name: peer.name,
      side: peer.name.startsWith('sandwire') ? 'ours' : 'peer',
      measure: () => measure(service),
      [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
    }
  } catch (error) {
    // Not thrown, because the servers of the others have to be stopped.
    return {
      name: peer.name,
      absent: `does not start: ${error instanceof Error ? error.message : String(error)}`,
    }
  }
}

/** A control that needs no server. */
export function openControl(name: string, measure: () => Promise<number>): Competitor {
  return { name, side: 'control', measure, [Symbol.asyncDispose]: async () => {} }
}

/** Several figures of one measurement: the first one runs it each round, the others return their part. */
export function openParts<Part extends string>(options: {
  readonly parts: readonly Part[]
  readonly measure: () => Promise<Readonly<Record<Part, number>>>
  readonly close: () => Promise<void>
}): Competitor[] {
  const { parts, measure, close } = options
  let latest: ReturnType<typeof measure> | undefined
  return parts.map((part, index) => ({
    name: part,
    side: 'ours',
    measure: async () => {
      if (index === 0 || latest === undefined) latest = measure()
      return (await latest)[part]
    },
    [Symbol.asyncDispose]: async () => {
      if (index === parts.length - 1) await close()
    },
  }))
}
