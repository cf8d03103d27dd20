import { describe, expect, test } from 'bun:test'
import { isLeaseFree, LeaseOnInput } from './lease-on-input.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function watch(): { readonly typing: LeaseOnInput; readonly done: string[] } {
  const done: string[] = []
  const typing = new LeaseOnInput({
    ask: () => void done.push('ask'),
    send: (input) => void done.push(new TextDecoder().decode(input)),
    lost: (count) => void done.push(`lost ${count}`),
  })
  return { typing, done }
}

type Known = Parameters<typeof isLeaseFree>[0]

const free: Known = {
  status: { kind: 'attached', session: 's', role: 'viewer' },
  role: 'viewer',
  authority: 'driver',
  attachment: 'a1',
  presence: { type: 'presence', driver: null, attachments: [], private: null },
}
const drivenBy = (driver: string): Known => ({
  ...free,
  presence: { type: 'presence', driver, attachments: [], private: null },
})

describe('isLeaseFree', () => {
  test('holds for a viewer who may drive while nobody has the lease', () => {
    expect(isLeaseFree(free)).toBe(true)
    expect(isLeaseFree({ ...free, authority: 'viewer' })).toBe(false)
    expect(isLeaseFree({ ...free, role: 'collaborator' })).toBe(false)
    expect(isLeaseFree({ ...free, status: { kind: 'connecting', attempt: 2 } })).toBe(false)
    expect(isLeaseFree({ ...free, presence: undefined })).toBe(false)
    // A disconnected driver keeps the lease for a while.
    expect(isLeaseFree(drivenBy('a2'))).toBe(false)
  })
})

describe('LeaseOnInput', () => {
  test('requests the lease once, and then sends what was typed', () => {
    const { typing, done } = watch()
    typing.hold(bytes('l'))
    typing.hold(bytes('s'))
    typing.settle(free)
    typing.settle(drivenBy('a1'))
    expect(done).toEqual(['ask'])
    typing.settle({ ...drivenBy('a1'), role: 'driver' })
    expect(done).toEqual(['ask', 'l', 's'])
    typing.settle({ ...drivenBy('a1'), role: 'driver' })
    expect(done).toHaveLength(3)
  })

  test('reports lost input when another has the lease, or without a connection', () => {
    const cut: Known = { ...free, status: { kind: 'connecting', attempt: 2 } }
    for (const state of [drivenBy('a2'), cut]) {
      const { typing, done } = watch()
      typing.hold(bytes('rm'))
      typing.settle(state)
      typing.settle({ ...drivenBy('a1'), role: 'driver' })
      expect(done).toEqual(['ask', 'lost 2'])
    }
  })

  test('ignores what the terminal or the mouse sends by itself', () => {
    const { typing, done } = watch()
    for (const text of ['\u{1b}[?1;2c', '\u{1b}[I', '\u{1b}[<35;10;4M', '\u{1b}[<0;1;1m', '\u{1b}[M !!', ''])
      typing.hold(bytes(text))
    expect(done).toEqual([])
    typing.hold(bytes('\u{1b}[A'))
    expect(done).toEqual(['ask'])
  })

  test('holds a bounded amount of input', () => {
    const { typing, done } = watch()
    typing.hold(bytes('x'.repeat(2 * 1024 * 1024)))
    typing.hold(bytes('y'))
    typing.settle({ ...drivenBy('a1'), role: 'driver' })
    expect(done).toEqual(['ask', `lost ${2 * 1024 * 1024}`, 'y'])
  })
})
