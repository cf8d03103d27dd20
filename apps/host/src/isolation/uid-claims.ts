import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import type { SandboxIds } from './sandbox-folders.ts'

/** First host id for sandboxes. systemd and subordinate ids leave the range from here to 2^31 alone. */
const FIRST_ID = 0x7000_0000
/** Every data folder has a block of ids of its own, so that two of them on one machine hardly meet. */
const BLOCKS = 8192
const IDS_PER_BLOCK = 32_768
const IDS_PER_SANDBOX = 2
const PAIRS = IDS_PER_BLOCK / IDS_PER_SANDBOX

/** The first id of the block that a data folder uses. */
export function firstIdOf(dataFolder: string): number {
  return FIRST_ID + Number(BigInt(Bun.hash(dataFolder)) % BigInt(BLOCKS)) * IDS_PER_BLOCK
}

function idsFrom(daemon: number): SandboxIds {
  return { daemon, user: daemon + 1 }
}

/**
 * Which sandbox has which pair of host ids. A claim is a symbolic link named by the first id of the pair that points to
 * the sandbox's id: made in one step, so no two sandboxes get one pair, and nothing is left locked by a crash. The name
 * is the id itself, so that files keep their owners when the data folder moves.
 */
export class UidClaims {
  readonly #firstId: number
  readonly #folder: string

  constructor(dataFolder: string) {
    this.#firstId = firstIdOf(dataFolder)
    this.#folder = path.join(dataFolder, 'isolation', 'uids')
  }

  find(sandbox: string): SandboxIds | undefined {
    const name = this.#nameOf(sandbox)
    return name === undefined ? undefined : idsFrom(Number(name))
  }

  /** The ids of the sandbox; claims the first free pair unless it has one. `isFree` has the last word on a pair. */
  claim(sandbox: string, isFree: (ids: SandboxIds) => boolean): SandboxIds {
    const found = this.find(sandbox)
    if (found !== undefined) return found
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const taken = new Set(readdirSync(this.#folder))
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const ids = idsFrom(this.#firstId + pair * IDS_PER_SANDBOX)
      if (!taken.has(String(ids.daemon)) && isFree(ids) && this.#take(ids, sandbox)) return ids
    }
    throw new Error('Cannot claim user ids: all are taken')
  }

  release(sandbox: string): void {
    const name = this.#nameOf(sandbox)
    if (name !== undefined) rmSync(path.join(this.#folder, name), { force: true })
  }

  #take(ids: SandboxIds, sandbox: string): boolean {
    try {
      symlinkSync(sandbox, path.join(this.#folder, String(ids.daemon)))
      return true
    } catch (error) {
      // Somebody else was faster; the next pair is as good.
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
      throw error
    }
  }

  #nameOf(sandbox: string): string | undefined {
    return list(this.#folder).find((name) => targetOf(path.join(this.#folder, name)) === sandbox)
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    // No folder, no claims.
    return []
  }
}

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link)
  } catch {
    // Released at this moment.
    return undefined
  }
}
