import { Descriptor, openAt, unlinkAt } from '../beneath/system-calls.ts'
import {
  AT_REMOVEDIR,
  EISDIR,
  ELOOP,
  ENOENT,
  ENOTDIR,
  ENOTEMPTY,
  O_DIRECTORY,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDONLY,
} from '../beneath/constants.ts'
import { fileError, refusal } from '../beneath/file-error.ts'
import { type Slot, statSlot } from '../beneath/root.ts'
import { readStat } from '../beneath/statx.ts'
import type { Condition } from '../files.ts'
import { checkCondition, cName, eachName, type FileContext, type Job } from './context.ts'
import { MAX_DEPTH } from './walk.ts'

/** Attempts on a folder that other processes fill meanwhile. */
const MAX_ROUNDS = 16
/** Names removed between two pauses. */
const BATCH = 64

export interface RemoveOptions extends Condition {
  readonly recursive: boolean
}

/** Removes a file, a link, an empty folder, or a folder with its contents. Links are not followed. */
export function* remove({ root }: FileContext, path: string, options: RemoveOptions): Job<void> {
  using slot = root.openSlot(path, 'remove')
  const found = statSlot(slot, 'remove')
  checkCondition(options, found, { action: 'remove', path })
  if (found === undefined) throw fileError('remove', path, -ENOENT)
  if (readStat(found).kind !== 'folder') return check(unlinkAt(slot.folder, slot.name, 0), path)
  if (!options.recursive) return check(unlinkAt(slot.folder, slot.name, AT_REMOVEDIR), path)
  yield* removeTree(slot, 0)
}

function check(result: number, path: string): void {
  if (result < 0) throw fileError('remove', path, result)
}

/** Removes the folder in a slot with its contents, or what has replaced it. */
export function* removeTree(slot: Omit<Slot, typeof Symbol.dispose>, depth: number): Job<void> {
  const { path } = slot
  if (depth > MAX_DEPTH)
    throw refusal('path_refused', 'remove', path, `folders are nested more than ${MAX_DEPTH} deep`)
  for (let rounds = 0; rounds < MAX_ROUNDS; rounds += 1) {
    const fd = openAt(slot.folder, slot.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK)
    if (fd === -ENOENT) return
    if (fd === -ENOTDIR || fd === -ELOOP) return check(unlinkAt(slot.folder, slot.name, 0), path)
    if (fd < 0) throw fileError('remove', path, fd)
    using folder = new Descriptor(fd)
    yield* empty(folder.fd, path, depth)
    const removed = unlinkAt(slot.folder, slot.name, AT_REMOVEDIR)
    if (removed >= 0 || removed === -ENOENT) return
    if (removed !== -ENOTEMPTY) throw fileError('remove', path, removed)
  }
  throw fileError('remove', path, -ENOTEMPTY)
}

function* empty(folder: number, path: string, depth: number): Job<void> {
  const names: string[] = []
  yield* eachName(folder, (name) => names.push(name) > 0, { action: 'remove', path })
  for (const [index, name] of names.entries()) {
    if (index % BATCH === 0) yield undefined
    const result = unlinkAt(folder, cName(name), 0)
    if (result === -EISDIR) yield* removeTree({ folder, name: cName(name), path }, depth + 1)
    else if (result !== -ENOENT) check(result, path)
  }
}
