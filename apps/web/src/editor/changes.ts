import { diff } from '@codemirror/merge'
import type { ChangeSpec, Text } from '@codemirror/state'

/** As far as a difference is looked into: what is larger is replaced as a whole. */
const EFFORT = { scanLimit: 1_000, timeout: 100 }

/** What makes one text out of another and leaves alone all that both have, so that places in it stay. */
export function changesBetween(before: Text, after: Text): readonly ChangeSpec[] {
  if (before.eq(after)) return []
  return diff(before.toString(), after.toString(), EFFORT).map(({ fromA, toA, fromB, toB }) => ({
    from: fromA,
    to: toA,
    insert: after.slice(fromB, toB),
  }))
}
