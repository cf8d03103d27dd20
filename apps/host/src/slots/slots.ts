import { createHash } from 'node:crypto'
import { linkSync, lstatSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { MAX_SLOTS } from '@sandwire/internal-api'
import { SymlinkClaims } from '../data/link-claims.ts'
import { giveSocket, makeGroupFolder, makePrivateFolder } from '../data/private-file.ts'
import { removeIfEmpty } from '../data/socket-path.ts'
import { ensureOwnedFolder } from '../isolation/sandbox-folders.ts'

/** Location and number of a data folder's slots. */
export interface SlotPlan {
  /** Private folder, on the file system of the sandboxes' sockets, which are hard-linked into it. */
  readonly folder: string
  readonly count: number
  /** Group that connects to the slots, besides this user. */
  readonly group?: number
}

function claimsIn(folder: string): SymlinkClaims {
  return new SymlinkClaims(path.join(folder, 'claims'))
}

/**
 * Plans the slots of a data folder, next to the sockets of its sandboxes: as many as given, or more if a sandbox that outlived the
 * last host has a higher one.
 */
export function planSlots(
  base: { dataFolder: string; runBase: string },
  count: number,
  group?: number,
): SlotPlan {
  const mark = createHash('sha256').update(base.dataFolder).digest('hex').slice(0, 12)
  const folder = path.join(base.runBase, `slots-${mark}`)
  const used = claimsIn(folder)
    .names()
    .map((name) => (/^\d{1,4}$/.test(name) ? Number(name) + 1 : 0))
  const all = Math.min(MAX_SLOTS, Math.max(count, ...used))
  return { folder, count: all, ...(group !== undefined && { group }) }
}

/** Sockets of all slots, in order. */
export function socketsOf({ folder, count }: SlotPlan): string[] {
  return Array.from({ length: count }, (_, slot) => path.join(folder, String(slot)))
}

/**
 * Slots are the fixed socket paths through which control connects to sandboxes. A slot is a hard link to sandboxd's socket, so it
 * always leads to that sandboxd, whatever the sandbox does to the original path. Only the holder of a sandbox's lock changes
 * its slot.
 */
export class Slots {
  readonly #plan: SlotPlan
  readonly #claims: SymlinkClaims

  constructor(plan: SlotPlan) {
    this.#plan = plan
    this.#claims = claimsIn(plan.folder)
  }

  /** Creates the folder unless it exists; its group can then connect to every sandbox that runs already. */
  open(): void {
    const { folder, count, group } = this.#plan
    ensureOwnedFolder(path.dirname(folder), 0o700)
    if (group === undefined) return makePrivateFolder(folder)
    makeGroupFolder(folder, group)
    for (const socket of socketsOf({ folder, count })) {
      const found = lstatSync(socket, { throwIfNoEntry: false })
      if (found?.isSocket() === true && found.gid !== group) giveSocket(socket, found.uid, group)
    }
  }

  /** Links a socket, which must belong to `uid`, into a slot. Throws when it is something else, or no slot is free. */
  publish(sandbox: string, socket: string, uid: number): number {
    const { folder, count } = this.#plan
    this.open()
    const names = Array.from({ length: count }, (_, slot) => String(slot))
    const name = this.#claims.claim(sandbox, names)
    if (name === undefined) throw new Error('Cannot publish the socket of the sandbox: all slots are in use')
    try {
      this.#link(socket, uid, path.join(folder, name))
    } catch (error) {
      this.release(sandbox)
      throw error
    }
    return Number(name)
  }

  /** Releases the slot of a sandbox that has ended. */
  release(sandbox: string): void {
    const name = this.#claims.find(sandbox)
    if (name === undefined) return
    rmSync(path.join(this.#plan.folder, name), { force: true })
    this.#claims.release(name)
  }

  /** Removes the folder unless slots are in use. */
  removeIfEmpty(): void {
    removeIfEmpty(path.join(this.#plan.folder, 'claims'))
    removeIfEmpty(this.#plan.folder)
  }

  /** Validates the link, not the original path, which the sandbox may change at any time. */
  #link(socket: string, uid: number, slot: string): void {
    const fresh = `${slot}.new`
    for (const left of [fresh, slot]) rmSync(left, { force: true })
    linkSync(socket, fresh)
    const found = lstatSync(fresh)
    if (!found.isSocket() || found.uid !== uid) {
      rmSync(fresh)
      throw new Error('Cannot publish the socket of the sandbox: not a socket of sandboxd')
    }
    if (this.#plan.group !== undefined) giveSocket(fresh, uid, this.#plan.group)
    renameSync(fresh, slot)
  }
}
