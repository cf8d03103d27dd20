import { createHash } from 'node:crypto'
import { linkSync, lstatSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { SymlinkClaims } from '../data/link-claims.ts'
import { makePrivateFolder } from '../data/private-file.ts'
import { removeIfEmpty } from '../data/socket-path.ts'
import { ensureOwnedFolder } from '../isolation/sandbox-folders.ts'

/** Where the slots of a data folder are, and how many. */
export interface SlotPlan {
  /** Only this user enters it; on the file system of the sandboxes' own sockets, which are linked here. */
  readonly folder: string
  readonly count: number
}

/** Places the slots of a data folder beside the sockets of its sandboxes, apart from those of others. */
export function planSlots(base: { dataFolder: string; runBase: string }, count: number): SlotPlan {
  const mark = createHash('sha256').update(base.dataFolder).digest('hex').slice(0, 12)
  return { folder: path.join(base.runBase, `slots-${mark}`), count }
}

/** The sockets of all slots, in their order. */
export function socketsOf({ folder, count }: SlotPlan): string[] {
  return Array.from({ length: count }, (_, slot) => path.join(folder, String(slot)))
}

/**
 * The ways into sandboxes. A slot is a hard link to the socket that sandboxd listens on, so it leads to that sandboxd and
 * to nothing else, whatever becomes of the path in a folder where the sandbox can write. Only whoever holds the lock of a
 * sandbox changes its slot.
 */
export class Slots {
  readonly #plan: SlotPlan
  readonly #claims: SymlinkClaims

  constructor(plan: SlotPlan) {
    this.#plan = plan
    this.#claims = new SymlinkClaims(path.join(plan.folder, 'claims'))
  }

  /** Makes a slot lead to a socket that must belong to this user id. Throws when it is something else, or no slot is free. */
  publish(sandbox: string, socket: string, uid: number): number {
    const { folder, count } = this.#plan
    ensureOwnedFolder(path.dirname(folder), 0o700)
    makePrivateFolder(folder)
    const names = Array.from({ length: count }, (_, slot) => String(slot))
    const name = this.#claims.claim(sandbox, names)
    if (name === undefined) throw new Error('Cannot make a way into the sandbox: all slots are taken')
    try {
      this.#link(socket, uid, path.join(folder, name))
    } catch (error) {
      this.release(sandbox)
      throw error
    }
    return Number(name)
  }

  /** Frees the slot of a sandbox that has ended: nobody is left who could read what is sent to the next one in it. */
  release(sandbox: string): void {
    const name = this.#claims.find(sandbox)
    if (name === undefined) return
    rmSync(path.join(this.#plan.folder, name), { force: true })
    this.#claims.release(name)
  }

  /** Takes the folder away, unless sandboxes have slots in it. */
  removeIfEmpty(): void {
    removeIfEmpty(path.join(this.#plan.folder, 'claims'))
    removeIfEmpty(this.#plan.folder)
  }

  /** What is validated is the link, which nobody else can change: the path may become something else at any time. */
  #link(socket: string, uid: number, slot: string): void {
    const fresh = `${slot}.new`
    for (const left of [fresh, slot]) rmSync(left, { force: true })
    linkSync(socket, fresh)
    const found = lstatSync(fresh)
    if (!found.isSocket() || found.uid !== uid) {
      rmSync(fresh)
      throw new Error('Cannot make a way into the sandbox: its socket is not one of sandboxd')
    }
    renameSync(fresh, slot)
  }
}
