import path from 'node:path'
import { SymlinkClaims } from '../data/link-claims.ts'
import type { SandboxIds } from './sandbox-folders.ts'

/** First host id of sandboxes. systemd and subordinate ids do not use the range from here to 2^31. */
const FIRST_ID = 0x7000_0000
/** Each data folder has its own block of ids, so that two on one machine rarely collide. */
const BLOCKS = 8192
const IDS_PER_BLOCK = 32_768
const IDS_PER_SANDBOX = 2
/** The second half of a block has the ids of egress proxies, at the same places as the pairs of their sandboxes. */
const EGRESS_OFFSET = IDS_PER_BLOCK / 2
const PAIRS = EGRESS_OFFSET / IDS_PER_SANDBOX

/** First id of a data folder's block. */
export function firstIdOf(dataFolder: string): number {
  return FIRST_ID + Number(BigInt(Bun.hash(dataFolder)) % BigInt(BLOCKS)) * IDS_PER_BLOCK
}

function idsFrom(daemon: number): SandboxIds {
  return { daemon, user: daemon + 1, egress: daemon + EGRESS_OFFSET }
}

/**
 * Assigns host ids to each sandbox. The claim's name is the first id, so that files keep their owners when the data
 * folder moves.
 */
export class UidClaims {
  readonly #firstId: number
  readonly #claims: SymlinkClaims

  constructor(dataFolder: string) {
    this.#firstId = firstIdOf(dataFolder)
    this.#claims = new SymlinkClaims(path.join(dataFolder, 'isolation', 'uids'))
  }

  find(sandbox: string): SandboxIds | undefined {
    const name = this.#claims.find(sandbox)
    return name === undefined ? undefined : idsFrom(Number(name))
  }

  /** The ids of the sandbox; claims the first free pair unless it has one. `isFree` may reject a pair. */
  claim(sandbox: string, isFree: (ids: SandboxIds) => boolean): SandboxIds {
    const name = this.#claims.claim(sandbox, this.#names(), (each) => isFree(idsFrom(Number(each))))
    if (name === undefined) throw new Error('Cannot claim user ids: all are in use')
    return idsFrom(Number(name))
  }

  release(sandbox: string): void {
    const name = this.#claims.find(sandbox)
    if (name !== undefined) this.#claims.release(name)
  }

  *#names(): Iterable<string> {
    for (let pair = 0; pair < PAIRS; pair += 1) yield String(this.#firstId + pair * IDS_PER_SANDBOX)
  }
}
