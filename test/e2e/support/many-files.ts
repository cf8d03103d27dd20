import { TarBuffer } from '@sandwire/tar'

/** In one folder: more than fits into one answer. */
const FLAT = 12_000
const FOLDERS = 38
const PER_FOLDER = 1_000

export const MANY = { flat: FLAT, folders: FOLDERS, files: FLAT + FOLDERS * PER_FOLDER } as const
/** The one file that holds it. */
export const NEEDLE = { text: 'a needle in 50,000 files', path: 'd17/f0500.txt' } as const

const pad = (value: number, width: number): string => String(value).padStart(width, '0')

function* paths(): Generator<string, void> {
  for (let at = 0; at < FLAT; at += 1) yield `flat/n${pad(at, 5)}.txt`
  for (let folder = 0; folder < FOLDERS; folder += 1)
    for (let at = 0; at < PER_FOLDER; at += 1) yield `d${pad(folder, 2)}/f${pad(at, 4)}.txt`
}

/** The tree as an archive. */
export function packManyFiles(): Uint8Array<ArrayBuffer> {
  const archive = new TarBuffer()
  for (const path of paths()) {
    const text = new TextEncoder().encode(`${path === NEEDLE.path ? NEEDLE.text : path}\nsecond line\n`)
    archive.entry({ path, kind: 'file', sizeBytes: text.length, mode: 0o644, mtimeNs: '1700000000000000000' })
    archive.content(text)
  }
  archive.end()
  return archive.take()
}
