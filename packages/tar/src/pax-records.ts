/** Records of an extended header by name. Values are bytes. */
export type PaxRecords = ReadonlyMap<string, Uint8Array>

const SPACE = 0x20
const NEWLINE = 0x0a
const EQUALS = 0x3d
/** More digits than the length of any record. */
const MAX_LENGTH_DIGITS = 7

/** Length of a record, which counts its own digits. */
function lengthOf(contentBytes: number): number {
  let length = contentBytes + 1
  while (String(length).length + contentBytes !== length) length = String(length).length + contentBytes
  return length
}

/** A record to write. A text value must be ASCII. */
export type PaxRecord = readonly [name: string, value: Uint8Array | string]

/** Size of records in bytes. */
export function sizeOfRecords(records: readonly PaxRecord[]): number {
  return records.reduce((sum, [name, value]) => sum + lengthOf(1 + name.length + 1 + value.length + 1), 0)
}

/** Writes records from an offset on, each as `LENGTH NAME=VALUE` and a newline. */
export function writeRecords(into: Uint8Array, offset: number, records: readonly PaxRecord[]): void {
  let at = offset
  for (const [name, value] of records) {
    const length = lengthOf(1 + name.length + 1 + value.length + 1)
    const head = `${length} ${name}=`
    putAscii(into, at, head)
    if (typeof value === 'string') putAscii(into, at + head.length, value)
    else into.set(value, at + head.length)
    at += length
    into[at - 1] = NEWLINE
  }
}

function putAscii(into: Uint8Array, offset: number, text: string): void {
  for (let at = 0; at < text.length; at += 1) into[offset + at] = text.charCodeAt(at)
}

/** The record length at an offset, or undefined. */
function readLength(bytes: Uint8Array, at: number): { length: number; digits: number } | undefined {
  const space = bytes.subarray(at, at + MAX_LENGTH_DIGITS + 1).indexOf(SPACE)
  const text = space < 1 ? '' : String.fromCharCode(...bytes.subarray(at, at + space))
  return /^[1-9][0-9]*$/.test(text) ? { length: Number(text), digits: space } : undefined
}

/** Parses records; undefined when they are malformed. The last record of a name wins. */
export function readRecords(bytes: Uint8Array): PaxRecords | undefined {
  const records = new Map<string, Uint8Array>()
  let at = 0
  while (at < bytes.length) {
    const { length, digits } = readLength(bytes, at) ?? { length: 0, digits: 0 }
    const end = at + length
    if (length < digits + 4 || end > bytes.length || bytes[end - 1] !== NEWLINE) return undefined
    const content = bytes.subarray(at + digits + 1, end - 1)
    const equals = content.indexOf(EQUALS)
    if (equals < 1) return undefined
    records.set(String.fromCharCode(...content.subarray(0, equals)), content.slice(equals + 1))
    at = end
  }
  return records
}
