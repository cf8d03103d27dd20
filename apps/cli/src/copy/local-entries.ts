import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { pathToBytes, pathFromBytes } from '@sandwire/protocol'
import type { TarEntry } from '@sandwire/tar'

/** A place on this machine: names are bytes. */
export type LocalPath = Buffer

const SLASH = Buffer.from('/')

/** As it was typed. */
export function localPath(typed: string): LocalPath {
  return Buffer.from(typed)
}

/** Something in a folder, by names that are text as `pathFromBytes` makes it. */
export function joinLocalPath(folder: LocalPath, ...names: readonly string[]): LocalPath {
  return Buffer.concat([folder, ...names.flatMap((name) => [SLASH, pathToBytes(name) ?? new Uint8Array(0)])])
}

/** Something on this machine that is to be copied. */
export interface LocalEntry extends TarEntry {
  readonly at: LocalPath
}

/** What could not be looked at. */
export interface UnreadableEntry {
  readonly path: string
  readonly why: string
}

export function describeSystemError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied'
  if (code === 'ENOENT') return 'no such file'
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'no space is left'
  return code === '' ? 'it cannot be used' : `it cannot be used (${code})`
}

/** What is at a place; links are not followed. */
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

/** Everything below a folder, folders before what is in them, by the order of bytes. What cannot be read is told. */
export function* walkLocal(folder: LocalPath, path: string): Generator<LocalEntry | UnreadableEntry> {
  let names: Buffer[]
  try {
    names = readdirSync(folder, { encoding: 'buffer' }).toSorted((a, b) => Buffer.compare(a, b))
  } catch (error) {
    yield { path, why: describeSystemError(error) }
    return
  }
  for (const bytes of names) {
    const name = pathFromBytes(bytes)
    const within = path === '' ? name : `${path}/${name}`
    try {
      const entry = statLocal(joinLocalPath(folder, name), within)
      yield entry
      if (entry.kind === 'folder') yield* walkLocal(entry.at, within)
    } catch (error) {
      yield { path: within, why: describeSystemError(error) }
    }
  }
}
