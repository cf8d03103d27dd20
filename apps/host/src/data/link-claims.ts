import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'

/**
 * Assigns names from a pool to owners. A claim is a symbolic link with the name, pointing to the owner: created atomically,
 * so no name has two owners, and a crash leaves no lock behind.
 */
export class SymlinkClaims {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Every claimed name. */
  names(): readonly string[] {
    return list(this.#folder)
  }

  /** The name that an owner has claimed. */
  find(owner: string): string | undefined {
    return list(this.#folder).find((name) => targetOf(path.join(this.#folder, name)) === owner)
  }

  /** The owner's name; claims the first free one unless it has one. `isFree` may reject an unclaimed name. */
  claim(
    owner: string,
    names: Iterable<string>,
    isFree: (name: string) => boolean = () => true,
  ): string | undefined {
    const found = this.find(owner)
    if (found !== undefined) return found
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const taken = new Set(list(this.#folder))
    for (const name of names) if (!taken.has(name) && isFree(name) && this.#take(name, owner)) return name
    return undefined
  }

  release(name: string): void {
    rmSync(path.join(this.#folder, name), { force: true })
  }

  #take(name: string, owner: string): boolean {
    try {
      symlinkSync(owner, path.join(this.#folder, name))
      return true
    } catch (error) {
      // Claimed concurrently; the next name is tried.
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
      throw error
    }
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
    // Released concurrently.
    return undefined
  }
}
