import { chmodSync, lchownSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import type { SlotPlan } from './slots.ts'

/**
 * Gates are unix sockets of workerd, one for each slot, through which the supervisor of the sandbox at that slot reaches the
 * credential gateway. workerd adds the number of the slot to every request, so that a sandbox cannot claim another's.
 */
export function gatesFolder({ folder }: Pick<SlotPlan, 'folder'>): string {
  return `${folder}-gates`
}

/** Socket of a slot's gate. */
export function gateSocket(folder: string, slot: number): string {
  return path.join(folder, `${slot}.sock`)
}

/** Creates the folder, in which only workerd's user can create sockets. */
export function openGates(folder: string, uid = process.getuid?.() ?? 0): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = lstatSync(folder)
  const owners = [uid, process.getuid?.()]
  if (!found.isDirectory() || !owners.includes(found.uid))
    throw new SandwireError('forbidden', `Cannot use "${folder}": not a folder of this user`)
  chmodSync(folder, 0o700)
  if (found.uid !== uid) lchownSync(folder, uid, uid)
}

/** Removes sockets of an earlier workerd, which could not bind to them again. */
export function removeStaleGates(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(path.join(folder, name), { force: true })
}
