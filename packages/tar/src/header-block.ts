import { BLOCK_BYTES } from './entry.ts'

/** Offsets and lengths of the header fields, from POSIX. */
const FIELDS = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  target: [157, 100],
  magic: [257, 8],
  prefix: [345, 155],
} as const
type Field = keyof typeof FIELDS

/** The uninterpreted fields of one header. */
export interface HeaderBlock {
  readonly name: Uint8Array
  readonly mode: number
  readonly sizeBytes: number
  readonly mtimeSeconds: number
  /** One character. */
  readonly type: string
  readonly target: Uint8Array
}

const POSIX_MAGIC: Uint8Array = new TextEncoder().encode('ustar\x0000')
const SLASH = 0x2f
const SPACE = 0x20
const ZERO = 0x30
/** Flag in the first byte of a binary number. */
const BINARY = 0x80
const NEGATIVE = 0xff
/** Longer than any path component a kernel accepts. */
const MAX_NAME = FIELDS.name[1]
const MAX_PREFIX = FIELDS.prefix[1]

function slice(block: Uint8Array, field: Field): Uint8Array {
  const [at, length] = FIELDS[field]
  return block.subarray(at, at + length)
}

/** A field up to its first NUL. */
function readBytes(block: Uint8Array, field: Field): Uint8Array {
  const bytes = slice(block, field)
  const end = bytes.indexOf(0)
  return end < 0 ? bytes : bytes.subarray(0, end)
}

function ascii(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

/** A number in octal digits or GNU's binary format; undefined when it is invalid or not a safe integer. */
function readNumber(block: Uint8Array, field: Field): number | undefined {
  const [at, length] = FIELDS[field]
  return ((block[at] ?? 0) & BINARY) === 0
    ? readOctal(block, at, at + length)
    : readBinary(slice(block, field))
}

/** Octal digits between spaces, up to a NUL. Parsed without a string, because every header has several. */
function readOctal(block: Uint8Array, from: number, to: number): number | undefined {
  let value = 0
  let state: 'before' | 'digits' | 'after' = 'before'
  for (let at = from; at < to; at += 1) {
    const byte = block[at] ?? 0
    if (byte === SPACE || byte === 0) state = state === 'before' && byte === SPACE ? 'before' : 'after'
    else if (byte < ZERO || byte > ZERO + 7 || state === 'after') return undefined
    else {
      state = 'digits'
      value = value * 8 + byte - ZERO
    }
  }
  return value
}

function readBinary(bytes: Uint8Array): number | undefined {
  const first = bytes[0] ?? 0
  let value = first === NEGATIVE ? -1n : BigInt(first & ~BINARY)
  for (const byte of bytes.subarray(1)) value = value * 256n + BigInt(byte)
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : undefined
}

/** Sum of all bytes, with the checksum field counted as spaces. */
function sumOf(block: Uint8Array): number {
  const [from, length] = FIELDS.checksum
  let sum = length * SPACE
  for (let at = 0; at < BLOCK_BYTES; at += 1) sum += block[at] ?? 0
  for (let at = from; at < from + length; at += 1) sum -= block[at] ?? 0
  return sum
}

/** The same with signed bytes, as some old programs compute it. */
function signedSumOf(block: Uint8Array): number {
  const [from, length] = FIELDS.checksum
  const isOurs = (byte: number, at: number): boolean => byte > 0x7f && (at < from || at >= from + length)
  return sumOf(block) - block.filter(isOurs).length * 0x100
}

/** The name prefix. Only POSIX headers have one; GNU and older formats use the field otherwise. */
function readName(block: Uint8Array): Uint8Array {
  const name = readBytes(block, 'name')
  if (!ascii(slice(block, 'magic')).startsWith('ustar\0')) return name
  const prefix = readBytes(block, 'prefix')
  if (prefix.length === 0) return name
  const whole = new Uint8Array(prefix.length + 1 + name.length)
  whole.set(prefix)
  whole[prefix.length] = SLASH
  whole.set(name, prefix.length + 1)
  return whole
}

/** The fields of a header; undefined when the checksum or a number is invalid. */
export function readHeader(block: Uint8Array): HeaderBlock | undefined {
  const checksum = readNumber(block, 'checksum')
  if (checksum !== sumOf(block) && checksum !== signedSumOf(block)) return undefined
  const mode = readNumber(block, 'mode')
  const sizeBytes = readNumber(block, 'size')
  const mtimeSeconds = readNumber(block, 'mtime')
  if (mode === undefined || sizeBytes === undefined || mtimeSeconds === undefined || sizeBytes < 0)
    return undefined
  const type = ascii(slice(block, 'type'))
  return { name: readName(block), mode, sizeBytes, mtimeSeconds, type, target: readBytes(block, 'target') }
}

/** Splits a path into name and prefix; undefined when it does not fit. */
function splitName(name: Uint8Array): readonly [name: Uint8Array, prefix: Uint8Array] | undefined {
  if (name.length <= MAX_NAME) return [name, new Uint8Array(0)]
  const at = name.subarray(0, MAX_PREFIX + 1).lastIndexOf(SLASH, name.length - 2)
  const isFitting = at > 0 && name.length - at - 1 <= MAX_NAME
  return isFitting ? [name.subarray(at + 1), name.subarray(0, at)] : undefined
}

/** True when the header alone can store the path. */
export function fitsName(name: Uint8Array): boolean {
  return name.length <= MAX_NAME || splitName(name) !== undefined
}

export function fitsTarget(target: Uint8Array): boolean {
  return target.length <= FIELDS.target[1]
}

/** Largest number in a field of twelve bytes: eleven octal digits. */
export const MAX_OCTAL = 0o777_7777_7777

/** Octal digits and a NUL; 0 for a number that does not fit. */
function putOctal(
  block: Uint8Array,
  field: Field,
  value: number,
  digits: number = FIELDS[field][1] - 1,
): void {
  const [from] = FIELDS[field]
  let rest = value >= 0 && value < 8 ** digits ? value : 0
  for (let at = from + digits - 1; at >= from; at -= 1) {
    block[at] = ZERO + (rest % 8)
    rest = Math.floor(rest / 8)
  }
}

/** Writes a header with its checksum into a zeroed block. Values that do not fit are truncated or 0; an extended header has them. */
export function writeHeader(block: Uint8Array, header: HeaderBlock): void {
  const { name, mode, sizeBytes, mtimeSeconds, type, target } = header
  const put = (field: Field, bytes: Uint8Array): void => {
    const [at, length] = FIELDS[field]
    block.set(bytes.length > length ? bytes.subarray(0, length) : bytes, at)
  }
  const split = name.length <= MAX_NAME ? undefined : splitName(name)
  put('name', split?.[0] ?? name)
  putOctal(block, 'mode', mode)
  putOctal(block, 'uid', 0)
  putOctal(block, 'gid', 0)
  putOctal(block, 'size', sizeBytes)
  putOctal(block, 'mtime', mtimeSeconds)
  block[FIELDS.type[0]] = type.charCodeAt(0)
  if (target.length > 0) put('target', target)
  put('magic', POSIX_MAGIC)
  if (split !== undefined) put('prefix', split[1])
  putOctal(block, 'checksum', sumOf(block), 6)
  block[FIELDS.checksum[0] + 7] = SPACE
}
