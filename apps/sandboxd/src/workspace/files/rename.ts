import { renameAt } from '../beneath/system-calls.ts'
import { EINVAL, ENOENT, ENOSYS, EXDEV } from '../beneath/constants.ts'
import { fileError, refusal } from '../beneath/file-error.ts'
import { type Slot, statSlot } from '../beneath/root.ts'
import { readStat } from '../beneath/statx.ts'
import type { Condition } from '../files.ts'
import { checkCondition, type FileContext, type Job } from './context.ts'
import { copy } from './copy.ts'
import { remove } from './remove.ts'

export interface RenameOptions extends Condition {
  readonly replaces: boolean
}

/** Renames a path. Across file systems it is copied and then removed. */
export function* rename(context: FileContext, from: string, to: string, options: RenameOptions): Job<void> {
  const { root } = context
  using source = root.openSlot(from, 'move')
  using target = root.openSlot(to, 'move')
  const found = statSlot(source, 'move')
  checkCondition(options, found, { action: 'move', path: from })
  if (found === undefined) throw fileError('move', from, -ENOENT)
  const moved = moveInto(source, target, options.replaces)
  if (moved >= 0) return
  // Both paths were resolved beneath the root, so EXDEV means two file systems.
  if (moved !== -EXDEV) throw errorOf(moved, from, to)
  yield* copy(context, from, to, options)
  yield* remove(context, from, { recursive: readStat(found).kind === 'folder' })
}

function moveInto(source: Slot, target: Slot, replaces: boolean): number {
  if (replaces) return renameAt(source, target, 'over')
  const moved = renameAt(source, target, 'beside')
  if (moved !== -EINVAL && moved !== -ENOSYS) return moved
  // Some file systems lack RENAME_NOREPLACE. A file that another process creates between check and rename is replaced.
  if (statSlot(target, 'move') !== undefined) return renameAt(source, target, 'beside')
  return renameAt(source, target, 'over')
}

function errorOf(errno: number, from: string, to: string): Error {
  if (errno === -EINVAL) return refusal('path_refused', 'move', from, 'a folder cannot be moved into itself')
  return fileError('move', errno === -ENOENT ? from : to, errno)
}
