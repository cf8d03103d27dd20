/** A classic BPF instruction (`struct sock_filter`). */
interface Instruction {
  readonly code: number
  /** Instructions to skip when the comparison is true, and when false. */
  readonly jt: number
  readonly jf: number
  readonly k: number
}

const BPF_LD_W_ABS = 0x20
const BPF_JEQ_K = 0x15
const BPF_JGE_K = 0x35
const BPF_JSET_K = 0x45
const BPF_RET_K = 0x06

const SECCOMP_RET_ALLOW = 0x7fff0000
const SECCOMP_RET_ERRNO = 0x00050000

/** Offsets in `struct seccomp_data`. */
export const DATA_NR = 0
export const DATA_ARCH = 4
const DATA_ARGS = 16

/** Offset of the low half of an argument; flags, requests and families fit in it. */
export function lowHalfOfArgument(index: number): number {
  return DATA_ARGS + index * 8
}

/** Offset of the high half, for sizes. */
export function highHalfOfArgument(index: number): number {
  return lowHalfOfArgument(index) + 4
}

export function load(offset: number): Instruction {
  return { code: BPF_LD_W_ABS, jt: 0, jf: 0, k: offset }
}

export function refuse(errno: number): Instruction {
  return { code: BPF_RET_K, jt: 0, jf: 0, k: SECCOMP_RET_ERRNO | errno }
}

export const ALLOW: Instruction = { code: BPF_RET_K, jt: 0, jf: 0, k: SECCOMP_RET_ALLOW }

/** Runs `body` when the loaded word equals `value`, and skips it otherwise. */
export function whenEqual(value: number, body: readonly Instruction[]): Instruction[] {
  return [{ code: BPF_JEQ_K, jt: 0, jf: body.length, k: value }, ...body]
}

/** Skips `body` when the loaded word equals `value`, and runs it otherwise. */
export function unlessEqual(value: number, body: readonly Instruction[]): Instruction[] {
  return [{ code: BPF_JEQ_K, jt: body.length, jf: 0, k: value }, ...body]
}

/** Runs `body` when the loaded word is at least `value`, unsigned. */
export function whenAtLeast(value: number, body: readonly Instruction[]): Instruction[] {
  return [{ code: BPF_JGE_K, jt: 0, jf: body.length, k: value }, ...body]
}

/** Runs `body` when the loaded word has any of the bits of `mask`. */
export function whenAnyBit(mask: number, body: readonly Instruction[]): Instruction[] {
  return [{ code: BPF_JSET_K, jt: 0, jf: body.length, k: mask }, ...body]
}

/** The bytes that `bwrap --seccomp FD` reads. Both architectures are little-endian. */
export function assemble(program: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(program.length * 8)
  const view = new DataView(bytes.buffer)
  for (const [index, { code, jt, jf, k }] of program.entries()) {
    if (jt > 255 || jf > 255) throw new RangeError('A jump is too long for classic BPF')
    view.setUint16(index * 8, code, true)
    view.setUint8(index * 8 + 2, jt)
    view.setUint8(index * 8 + 3, jf)
    view.setUint32(index * 8 + 4, k >>> 0, true)
  }
  return bytes
}

export type { Instruction }
