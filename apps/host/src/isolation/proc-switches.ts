import { lstatSync, readdirSync } from 'node:fs'
import path from 'node:path'
import type { Binding } from './bwrap-argv.ts'

const OWNER_MAY_WRITE = 0o200

/**
 * What of `/proc` is read only in a sandbox whose processes are root's by their number. The kernel lets that number write its switches
 * without any capability, and bubblewrap (0.8) covers only those folders that can themselves be written.
 */
export function procSwitches(root = '/proc'): Binding[] {
  return readdirSync(root)
    .filter((name) => !/^[0-9]+$/.test(name) && isSwitch(path.join(root, name)))
    .map((name) => ({ from: path.join(root, name), to: path.join('/proc', name) }))
}

function isSwitch(file: string): boolean {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined || found.isSymbolicLink()) return false
  return found.isDirectory() || (found.mode & OWNER_MAY_WRITE) !== 0
}
