import { readdirSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { isSandboxId } from '@sandwire/internal-api'
import { schema } from '@sandwire/protocol'
import { filesIn } from '../supervisor/sandbox-files.ts'
import type { DataFolder } from './data-folder.ts'
import { readPrivateFile, writePrivateFile } from './private-file.ts'

const identitySchema = schema.record({
  /** Part of the names that sandboxes have on this machine outside the data folder; random. */
  scope: schema.text(8, /^[0-9a-f]{8}$/),
  path: schema.text(4096),
  device: schema.nonNegativeInteger,
  inode: schema.nonNegativeInteger,
})
type FolderIdentity = schema.Decoded<typeof identitySchema>

type IdentityFiles = Pick<DataFolder, 'root' | 'identity' | 'sandboxes' | 'workerd'>

function readIdentity(file: string): FolderIdentity | undefined {
  try {
    return identitySchema.decode(JSON.parse(readPrivateFile(file) ?? 'null'))
  } catch {
    // Malformed: a new one is written.
    return undefined
  }
}

/** The scope of a data folder; undefined before its first use. */
export function scopeOf({ identity }: Pick<DataFolder, 'identity'>): string | undefined {
  return readIdentity(identity)?.scope
}

/**
 * The path of the folder that this one was copied from; undefined when it is the original. A renamed folder keeps its inode; the
 * number of a device may change at a reboot, but then the path is the same.
 */
export function findOriginal({ root, identity }: Pick<DataFolder, 'root' | 'identity'>): string | undefined {
  const known = readIdentity(identity)
  if (known === undefined) return undefined
  const { dev, ino } = statSync(root)
  const isSame = known.inode === ino && (known.device === dev || known.path === root)
  return isSame ? undefined : known.path
}

/**
 * Records which folder this is. A copy gets a scope of its own, and forgets the processes of the original, which it would otherwise
 * take for its own. The caller holds the folder's lock.
 */
export function claimIdentity(folder: IdentityFiles): void {
  const original = findOriginal(folder)
  if (original !== undefined) forgetProcesses(folder)
  const known = original === undefined ? readIdentity(folder.identity) : undefined
  const { dev, ino } = statSync(folder.root)
  const scope = known?.scope ?? Buffer.from(crypto.getRandomValues(new Uint8Array(4))).toString('hex')
  if (known?.path === folder.root && known.device === dev) return
  writePrivateFile(folder.identity, JSON.stringify({ scope, path: folder.root, device: dev, inode: ino }))
}

function forgetProcesses({ sandboxes, workerd }: IdentityFiles): void {
  rmSync(workerd, { force: true })
  for (const id of readdirSync(sandboxes).filter(isSandboxId)) {
    const { state, lock } = filesIn(path.join(sandboxes, id))
    for (const file of [state, lock]) rmSync(file, { force: true })
  }
}
