import { bytesOfPath } from '../path-text.ts'
import { BLOCK_BYTES, paddingOf, type TarEntry, type TarKind, type TarNote } from './entry.ts'
import { fitsName, fitsTarget, MAX_OCTAL, writeHeader } from './header-block.ts'
import { wholeSeconds, writeSeconds } from './nanoseconds.ts'
import { type PaxRecords, writeRecords } from './pax-records.ts'

/** What ends an archive. */
export const TAR_END: Uint8Array = new Uint8Array(2 * BLOCK_BYTES)

/** What a note begins with, so that it is told from somebody else's comment. */
export const NOTE_MARK = 'sandwire:'

const TYPES: Readonly<Record<Exclude<TarKind, 'special'>, string>> = {
  file: '0',
  'hard-link': '1',
  link: '2',
  folder: '5',
}
const NOTHING = new Uint8Array(0)
/** What programs that know no extended headers unpack them as. */
const EXTENDED_NAME: Uint8Array = new TextEncoder().encode('PaxHeader')
const SLASH = 0x2f

function join(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function writeExtended(type: 'x' | 'g', records: PaxRecords): readonly Uint8Array[] {
  const body = writeRecords(records)
  const header = {
    name: EXTENDED_NAME,
    mode: 0o644,
    sizeBytes: body.length,
    mtimeSeconds: 0,
    type,
    target: NOTHING,
  }
  return [writeHeader(header), body, new Uint8Array(paddingOf(body.length))]
}

function nameOf({ path, kind }: TarEntry): Uint8Array {
  const bytes = bytesOfPath(path) ?? NOTHING
  return kind === 'folder' && bytes.at(-1) !== SLASH ? join([bytes, Uint8Array.of(SLASH)]) : bytes
}

/** Everything that comes before the bytes of an entry: its header, behind another one for what that cannot hold. */
export function writeEntry(entry: TarEntry & { readonly kind: Exclude<TarKind, 'special'> }): Uint8Array {
  const name = nameOf(entry)
  const target = bytesOfPath(entry.target ?? '') ?? NOTHING
  const sizeBytes = entry.kind === 'file' ? entry.sizeBytes : 0
  const mtimeSeconds = wholeSeconds(entry.mtimeNs)
  const text = (value: string): Uint8Array => new TextEncoder().encode(value)
  const records = new Map<string, Uint8Array>()
  if (!fitsName(name)) records.set('path', name)
  if (!fitsTarget(target)) records.set('linkpath', target)
  if (sizeBytes > MAX_OCTAL) records.set('size', text(String(sizeBytes)))
  const isWhole = entry.mtimeNs.endsWith('000000000') || entry.mtimeNs === '0'
  if (!isWhole || mtimeSeconds < 0 || mtimeSeconds > MAX_OCTAL)
    records.set('mtime', text(writeSeconds(entry.mtimeNs)))
  const header = { name, mode: entry.mode & 0o7777, sizeBytes, mtimeSeconds, type: TYPES[entry.kind], target }
  return join([...(records.size === 0 ? [] : writeExtended('x', records)), writeHeader(header)])
}

/** A comment about the archive, which other programs pass over. */
export function writeNote({ code, path }: TarNote): Uint8Array {
  const value = join([new TextEncoder().encode(`${NOTE_MARK}${code} `), bytesOfPath(path) ?? NOTHING])
  return join(writeExtended('g', new Map([['comment', value]])))
}
