import { TarBuffer } from '@sandwire/tar'

/** Files in the folder `flat`: more than one listing returns. */
const FLAT = 12_000
const PER_FOLDER = 1_000

/** A tree of many small files, one of which contains a text that no other file contains. */
export interface ManyFiles {
  readonly flat: number
  readonly folders: number
  readonly files: number
  readonly needle: { readonly path: string; readonly text: string }
}

export function describeManyFiles(folders: number): ManyFiles {
  const path = `d${pad(folders >> 1, 2)}/f0500.txt`
  return {
    flat: FLAT,
    folders,
    files: FLAT + folders * PER_FOLDER,
    needle: { path, text: 'a needle in a haystack' },
  }
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, '0')
}

function* paths(folders: number): Generator<string, void> {
  for (let at = 0; at < FLAT; at += 1) yield `flat/n${pad(at, 5)}.txt`
  for (let folder = 0; folder < folders; folder += 1)
    for (let at = 0; at < PER_FOLDER; at += 1) yield `d${pad(folder, 2)}/f${pad(at, 4)}.txt`
}

/** Packs the tree as a tar archive. */
export function packManyFiles({ folders, needle }: ManyFiles): Uint8Array<ArrayBuffer> {
  const archive = new TarBuffer()
  for (const path of paths(folders)) {
    const text = new TextEncoder().encode(`${path === needle.path ? needle.text : path}\nsecond line\n`)
    archive.entry({ path, kind: 'file', sizeBytes: text.length, mode: 0o644, mtimeNs: '1700000000000000000' })
    archive.content(text)
  }
  archive.end()
  return archive.take()
}
