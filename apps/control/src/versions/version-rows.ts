import type { SegmentId } from '@sandwire/version-format'
import { numberOf, type Row, textOf } from '../sql.ts'
import type { ListedVersion, Version } from './version-store.ts'

/** A row of the table of versions, without its segments. */
export function toDescription(row: Row): Omit<ListedVersion, 'addedBytes' | 'isHeld'> {
  const name = row['name']
  return {
    number: numberOf(row, 'number'),
    createdMs: numberOf(row, 'created_ms'),
    kind: textOf(row, 'kind') === 'checkpoint' ? 'checkpoint' : 'automatic',
    name: typeof name === 'string' ? name : undefined,
    isFuzzy: numberOf(row, 'is_fuzzy') === 1,
    unreadable: numberOf(row, 'unreadable'),
  }
}

/** A row of the table of versions. */
export function toVersion(row: Row): Version {
  return {
    ...toDescription(row),
    save: textOf(row, 'save'),
    // Written by `commit`.
    manifests: JSON.parse(textOf(row, 'manifests')) as SegmentId[],
    segments: JSON.parse(textOf(row, 'segments')) as SegmentId[],
  }
}
