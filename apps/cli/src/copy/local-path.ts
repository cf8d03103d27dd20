import { bytesOfPath } from '@sandwire/protocol'

/** A place on this machine: names are bytes. */
export type LocalPath = Buffer

const SLASH = Buffer.from('/')

/** As it was typed. */
export function localPath(typed: string): LocalPath {
  return Buffer.from(typed)
}

/** Something in a folder, by names that are text as `textOfPath` makes it. */
export function inside(folder: LocalPath, ...names: readonly string[]): LocalPath {
  return Buffer.concat([folder, ...names.flatMap((name) => [SLASH, bytesOfPath(name) ?? new Uint8Array(0)])])
}
