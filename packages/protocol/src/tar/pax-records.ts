/** Records of an extended header by name. Values are bytes. */
export type PaxRecords = ReadonlyMap<string, Uint8Array>

const SPACE = 0x20
const NEWLINE = 0x0a
const EQUALS = 0x3d
/** More digits than the length of a record has. */
const MAX_LENGTH_DIGITS = 7

/** Length of a record, which counts its own digits. */
function lengthOf(contentBytes: number): number {
  let length = contentBytes + 1
  while (String(length).length + contentBytes !== length) length = String(length).length + contentBytes
  return length
}

/** One record: its length, a space, name, `=`, value, newline. */
function writeRecord(name: string, value: Uint8Array): Uint8Array {
  const length = lengthOf(1 + name.length + 1 + value.length + 1)
  const head = new TextEncoder().encode(`${length} ${name}=`)
  const record = new Uint8Array(length)
  record.set(head)
  record.set(value, head.length)
  record[length - 1] = NEWLINE
  return record
}

export function writeRecords(records: PaxRecords): Uint8Array {
  const parts = [...records].map(([name, value]) => writeRecord(name, value))
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** The length that stands at an offset, or undefined. */
function readLength(bytes: Uint8Array, at: number): { length: number; digits: number } | undefined {
  const space = bytes.subarray(at, at + MAX_LENGTH_DIGITS + 1).indexOf(SPACE)
  const text = space < 1 ? '' : String.fromCharCode(...bytes.subarray(at, at + space))
  return /^[1-9][0-9]*$/.test(text) ? { length: Number(text), digits: space } : undefined
}

/** The records; undefined when they are malformed. Of several with one name the last counts. */
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
