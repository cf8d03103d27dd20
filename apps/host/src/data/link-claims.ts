import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'

/**
 * Who has which of many things. A claim is a symbolic link that is named like the thing and points to its owner: made in
 * one step, so no two owners get one thing, and nothing is left locked by a crash.
 */
export class SymlinkClaims {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** The thing an owner has. */
  find(owner: string): string | undefined {
    return list(this.#folder).find((name) => targetOf(path.join(this.#folder, name)) === owner)
  }

  /** The thing an owner has; claims the first that is free unless it has one. `isFree` has the last word on one that nobody has. */
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
      // Somebody else was faster; the next one is as good.
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
    // Released at this moment.
    return undefined
  }
}
