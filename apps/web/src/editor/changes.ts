import { diff } from '@codemirror/merge'
import type { ChangeSpec, Text } from '@codemirror/state'

/** Bounds the diff; a larger difference replaces the whole text. */
const EFFORT = { scanLimit: 1_000, timeout: 100 }

/** The changes that turn one text into another. Unchanged parts are left alone, so that positions in them survive. */
export function changesBetween(before: Text, after: Text): readonly ChangeSpec[] {
  if (before.eq(after)) return []
  return diff(before.toString(), after.toString(), EFFORT).map(({ fromA, toA, fromB, toB }) => ({
    from: fromA,
    to: toA,
    insert: after.slice(fromB, toB),
  }))
}
