import type { Entry, FileStat } from '../files.ts'

const NS_PER_MS = 1_000_000n

/** What routes say of a file. */
export function viewStat(stat: FileStat & Pick<Entry, 'target'>): Record<string, string | number> {
  const { kind, sizeBytes, mode, mtimeNs, etag, target } = stat
  return {
    kind,
    size: sizeBytes,
    mode,
    mtimeMs: Number(BigInt(mtimeNs) / NS_PER_MS),
    etag,
    ...(target === undefined ? {} : { target }),
  }
}

/** Whole milliseconds as files have them. */
export function nanoseconds(mtimeMs: number): string {
  return (BigInt(mtimeMs) * NS_PER_MS).toString()
}
