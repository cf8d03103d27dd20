import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { pathToBytes, pathFromBytes } from '@sandwire/protocol'
import type { TarEntry } from '@sandwire/tar'

/** A local path as bytes. */
export type LocalPath = Buffer

const SLASH = Buffer.from('/')

/** Converts a typed path. */
export function toLocalPath(typed: string): LocalPath {
  return Buffer.from(typed)
}

/** Appends names, as decoded by `pathFromBytes`, to a folder. */
export function joinLocalPath(folder: LocalPath, ...names: readonly string[]): LocalPath {
  return Buffer.concat([folder, ...names.flatMap((name) => [SLASH, pathToBytes(name) ?? new Uint8Array(0)])])
}

/** A local file, folder or link to copy. */
export interface LocalEntry extends TarEntry {
  readonly at: LocalPath
}

/** An entry that could not be read. */
export interface UnreadableEntry {
  readonly path: string
  readonly reason: string
}

/** True for ENOSPC and EDQUOT. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}

export function describeSystemError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied'
  if (code === 'ENOENT') return 'no such file'
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'no space left'
  return code === '' ? 'unknown error' : code
}

/** Reads the attributes of an entry; links are not followed. */
export function statLocal(at: LocalPath, path: string): LocalEntry {
  const stat = lstatSync(at, { bigint: true })
  const kind = stat.isFile()
    ? 'file'
    : stat.isDirectory()
      ? 'folder'
      : stat.isSymbolicLink()
        ? 'link'
        : 'special'
  return {
    at,
    path,
    kind,
    sizeBytes: kind === 'file' ? Number(stat.size) : 0,
    mode: Number(stat.mode) & 0o7777,
    mtimeNs: String(stat.mtimeNs),
    ...(kind === 'link' ? { target: pathFromBytes(readlinkSync(at, { encoding: 'buffer' })) } : {}),
  }
}

/** All entries below a folder in byte order, each folder before its contents. Yields errors as entries. */
export function* walkLocal(folder: LocalPath, path: string): Generator<LocalEntry | UnreadableEntry> {
  let names: Buffer[]
  try {
    names = readdirSync(folder, { encoding: 'buffer' }).toSorted((a, b) => Buffer.compare(a, b))
  } catch (error) {
    yield { path, reason: describeSystemError(error) }
    return
  }
  for (const bytes of names) {
    const name = pathFromBytes(bytes)
    const relativePath = path === '' ? name : `${path}/${name}`
    try {
      const entry = statLocal(joinLocalPath(folder, name), relativePath)
      yield entry
      if (entry.kind === 'folder') yield* walkLocal(entry.at, relativePath)
    } catch (error) {
      yield { path: relativePath, reason: describeSystemError(error) }
    }
  }
}
