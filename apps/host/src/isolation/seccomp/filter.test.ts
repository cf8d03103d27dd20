import { describe, expect, test } from 'bun:test'
import { assemble, type Instruction } from './bpf.ts'
import { DENIED_CALLS, FILTERED_CALLS } from './denied-calls.ts'
import { createFilter, createFilterBytes, type Architecture } from './filter.ts'

const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 }
const ALLOW = 0x7fff0000
const refused = (errno: number): number => 0x00050000 | errno

interface Call {
  readonly nr: number
  readonly arch?: number
  readonly args?: readonly bigint[]
}

/** Runs a filter as the kernel does: no loops, one accumulator. */
function runFilter(program: readonly Instruction[], call: Call & { arch: number }): number {
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, call.nr, true)
  data.setUint32(4, call.arch, true)
  for (const [index, value] of (call.args ?? []).entries()) data.setBigUint64(16 + index * 8, value, true)
  let loaded = 0
  for (let at = 0; at < program.length; at += 1) {
    const { code, jt, jf, k } = program[at] ?? { code: 0, jt: 0, jf: 0, k: 0 }
    if (code === 0x06) return k
    if (code === 0x20) loaded = data.getUint32(k, true)
    else if (code === 0x15) at += loaded === k >>> 0 ? jt : jf
    else if (code === 0x35) at += loaded >= k >>> 0 ? jt : jf
    else if (code === 0x45) at += (loaded & k) !== 0 ? jt : jf
    else throw new Error(`Unknown instruction ${code}`)
  }
  throw new Error('The filter ends without an answer')
}

function evaluate(architecture: Architecture, call: Call): number {
  return runFilter(createFilter(architecture), { arch: AUDIT[architecture], ...call })
}

describe.each(['x64', 'arm64'] as const)('the system call filter on %s (threat T39)', (architecture) => {
  const numberOf = (name: keyof typeof FILTERED_CALLS): number => FILTERED_CALLS[name][architecture] ?? -1

  const denied = Object.entries(DENIED_CALLS).flatMap(([name, call]) => {
    const nr = call[architecture]
    return nr === undefined ? [] : [{ name, nr }]
  })
  test.each(denied)('refuses $name', ({ nr }) => {
    expect(evaluate(architecture, { nr })).toBe(refused(1))
  })

  test('allows every other call', () => {
    const validated = new Set([
      ...denied.map(({ nr }) => nr),
      ...Object.values(FILTERED_CALLS).map((each) => each[architecture]),
    ])
    for (let nr = 0; nr < 500; nr += 1)
      if (!validated.has(nr)) expect(evaluate(architecture, { nr })).toBe(ALLOW)
  })

  test('allows segments of shared memory of a page, and no larger ones (threat T32)', () => {
    const ofSize = (bytes: bigint): number =>
      evaluate(architecture, { nr: numberOf('shmget'), args: [0n, bytes, 0o1600n] })
    expect([ofSize(0n), ofSize(56n), ofSize(4096n)]).toEqual([ALLOW, ALLOW, ALLOW])
    expect([ofSize(4097n), ofSize(1n << 32n)]).toEqual([refused(28), refused(28)])
  })

  test('refuses calls of another architecture', () => {
    expect(evaluate(architecture, { nr: 0, arch: 0x40000003 })).toBe(refused(1))
  })

  test.each(['clone3', 'io_setup'] as const)('returns ENOSYS for %s, so that programs do without', (name) => {
    expect(evaluate(architecture, { nr: numberOf(name) })).toBe(refused(38))
  })

  test.each([0x00020000n, 0x02000000n, 0x04000000n, 0x08000000n, 0x10000000n, 0x20000000n, 0x40000000n])(
    'refuses clone with the namespace flag %d, whatever else is set',
    (flag) => {
      expect(evaluate(architecture, { nr: numberOf('clone'), args: [flag | 17n] })).toBe(refused(1))
      expect(evaluate(architecture, { nr: numberOf('clone'), args: [flag | 0xffff_ffff_0000_0000n] })).toBe(
        refused(1),
      )
    },
  )

  test('allows clone for fork and threads', () => {
    expect(evaluate(architecture, { nr: numberOf('clone'), args: [17n] })).toBe(ALLOW)
    expect(evaluate(architecture, { nr: numberOf('clone'), args: [0x3d0f00n] })).toBe(ALLOW)
  })

  test.each([0x5412n, 0x541cn, 0x1_0000_5412n, 0xffff_ffff_0000_541cn])(
    'refuses ioctl %d, also with high bits that the kernel ignores',
    (request) => {
      expect(evaluate(architecture, { nr: numberOf('ioctl'), args: [0n, request] })).toBe(refused(1))
    },
  )

  test('allows other terminal requests', () => {
    for (const request of [0x5401n, 0x5413n, 0x5414n, 0x540fn])
      expect(evaluate(architecture, { nr: numberOf('ioctl'), args: [0n, request] })).toBe(ALLOW)
  })

  test.each([
    { family: 1n, answer: ALLOW },
    { family: 2n, answer: ALLOW },
    { family: 10n, answer: ALLOW },
    { family: 16n, answer: ALLOW },
    { family: 17n, answer: refused(97) },
    { family: 38n, answer: refused(97) },
    { family: 40n, answer: refused(97) },
    { family: 0x1_0000_0028n, answer: refused(97) },
  ])('returns $answer for a socket of family $family, and for a pair', ({ family, answer }) => {
    for (const name of ['socket', 'socketpair'] as const)
      expect(evaluate(architecture, { nr: numberOf(name), args: [family] })).toBe(answer)
  })

  test('makes memory countable for a watchdog (threat T32)', () => {
    const watched = (name: keyof typeof FILTERED_CALLS, ...args: bigint[]): number =>
      runFilter(createFilter(architecture, true), { arch: AUDIT[architecture], nr: numberOf(name), args })
    for (const name of ['memfd_create', 'memfd_secret', 'msgget'] as const)
      expect(watched(name)).toBe(refused(38))
    const setOf = (semaphores: bigint): number => watched('semget', 0n, semaphores, 0o1600n)
    expect([setOf(0n), setOf(16n), setOf(17n), setOf(0xffff_ffffn)]).toEqual([
      ALLOW,
      ALLOW,
      refused(28),
      refused(28),
    ])
    // SO_SNDBUF, SO_RCVBUF: no effect. SO_KEEPALIVE, TCP_NODELAY, and an option of TCP with the number of SO_SNDBUF: allowed.
    expect([watched('setsockopt', 3n, 1n, 7n), watched('setsockopt', 3n, 1n, 8n)]).toEqual([
      refused(0),
      refused(0),
    ])
    for (const [level, option] of [
      [1n, 9n],
      [6n, 1n],
      [6n, 7n],
    ] as const)
      expect(watched('setsockopt', 3n, level, option)).toBe(ALLOW)
    for (const name of ['memfd_create', 'memfd_secret', 'msgget', 'setsockopt'] as const)
      expect(evaluate(architecture, { nr: numberOf(name), args: [3n, 1n, 7n] })).toBe(ALLOW)
    expect(evaluate(architecture, { nr: numberOf('semget'), args: [0n, 32_000n] })).toBe(ALLOW)
  })

  test('allows common personalities only', () => {
    expect(evaluate(architecture, { nr: numberOf('personality'), args: [0n] })).toBe(ALLOW)
    expect(evaluate(architecture, { nr: numberOf('personality'), args: [0xffffffffn] })).toBe(ALLOW)
    expect(evaluate(architecture, { nr: numberOf('personality'), args: [0x0400000n] })).toBe(refused(1))
  })
})

test('the filter on x64 refuses every call of the x32 interface', () => {
  for (const nr of [0, 1, 165, 272, 520]) expect(evaluate('x64', { nr: nr | 0x40000000 })).toBe(refused(1))
})

test('the filter is written in the kernel’s layout', () => {
  const bytes = createFilterBytes('x64')
  expect(bytes.length).toBe(createFilter('x64').length * 8)
  expect([...bytes.subarray(0, 24)]).toEqual([
    32, 0, 0, 0, 4, 0, 0, 0, 21, 0, 1, 0, 62, 0, 0, 192, 6, 0, 0, 0, 1, 0, 5, 0,
  ])
})

test('throws for a jump that is too long', () => {
  expect(() => assemble([{ code: 0x15, jt: 0, jf: 256, k: 0 }])).toThrow('too long')
})
