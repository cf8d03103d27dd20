import { mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { SymlinkClaims } from '../data/link-claims.ts'
import { removeIfEmpty } from '../data/socket-path.ts'
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

/** The ids of a sandbox are used by processes of another data folder. */
export class IdsInUse extends Error {
  constructor() {
    super(
      'Cannot use the ids of the sandbox: they are in use by another data folder, of which this may be a copy',
    )
  }
}

/**
 * Records which data folder uses ids, for all data folders of this machine: copies of one have the same ids. The records are in the
 * folder for sockets, which is empty after a reboot.
 */
export class UidsInUse {
  readonly #folder: string
  readonly #owner: string

  constructor(runBase: string, owner: string) {
    this.#folder = path.join(runBase, 'uids')
    this.#owner = owner
  }

  /** Records the ids for this data folder. Throws `IdsInUse` when another one has them and `isFree` returns false. */
  take(ids: SandboxIds, isFree: () => boolean): void {
    if (this.#ownerOf(ids) === this.#owner) return
    if (this.isOthers(ids)) {
      if (!isFree()) throw new IdsInUse()
      rmSync(this.#fileOf(ids), { force: true })
    }
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    try {
      symlinkSync(this.#owner, this.#fileOf(ids))
    } catch {
      // Taken meanwhile.
      throw new IdsInUse()
    }
  }

  /** True when another data folder uses the ids, so that their processes are not ours. */
  isOthers(ids: SandboxIds): boolean {
    const owner = this.#ownerOf(ids)
    return owner !== undefined && owner !== this.#owner
  }

  release(ids: SandboxIds): void {
    if (this.isOthers(ids)) return
    rmSync(this.#fileOf(ids), { force: true })
    removeIfEmpty(this.#folder)
  }

  #fileOf({ daemon }: SandboxIds): string {
    return path.join(this.#folder, String(daemon))
  }

  #ownerOf(ids: SandboxIds): string | undefined {
    try {
      return readlinkSync(this.#fileOf(ids))
    } catch {
      // Not in use.
      return undefined
    }
  }
}
