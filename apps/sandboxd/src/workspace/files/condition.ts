import { type Doing, refusal } from '../beneath/file-error.ts'
import { readStat } from '../beneath/statx.ts'
import type { Condition } from '../files.ts'

/** Throws `file_changed` unless what is there, undefined for nothing, is what the change was meant for. */
export function checkCondition(
  { ifMatch, ifAbsent }: Condition,
  stat: Uint8Array | undefined,
  told: { readonly doing: Doing; readonly path: string },
): void {
  const changed = (why: string): Error => refusal('file_changed', told.doing, told.path, why)
  if (ifAbsent === true && stat !== undefined) throw changed('something is there already')
  if (ifMatch === undefined) return
  if (stat === undefined) throw changed('it is gone')
  const { etag } = readStat(stat)
  if (!ifMatch.includes('*') && !ifMatch.includes(etag)) throw changed('it was changed meanwhile')
}
