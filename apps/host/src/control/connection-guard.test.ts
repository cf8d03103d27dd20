import { describe, expect, test } from 'bun:test'
import type { AcceptedSocket } from './accepted-sockets.ts'
import { ConnectionGuard } from './connection-guard.ts'

/** A guard of these connections, by network; `others` are sockets of other programs. */
function open(counts: Record<string, number>, { isPermitted = true, others = 0 } = {}) {
  const state = { counts, nowMs: 0, scans: 0, holds: [] as boolean[], events: [] as string[] }
  const list = (): AcceptedSocket[] =>
    Object.entries(state.counts).flatMap(([network, count]) =>
      Array.from({ length: count }, (_, fd) => ({ fd, network, peer: `${network}:${fd}` })),
    )
  const guard = new ConnectionGuard({
    sockets: {
      list: () => {
        state.scans += 1
        return isPermitted ? list() : undefined
      },
      close: (sockets, count) => {
        const network = sockets[0]?.network ?? ''
        state.counts[network] = (state.counts[network] ?? 0) - count
      },
      hold: (isHeld) => void state.holds.push(isHeld),
    },
    limits: { total: 100, perAddress: 40 },
    countSockets: () => list().length + others,
    log: { info: () => {}, warn: (event) => void state.events.push(event), error: () => {} },
    nowMs: () => state.nowMs,
  })
  const tick = (afterMs = 1_000): void => {
    state.nowMs += afterMs
    guard.tick()
  }
  return { state, tick }
}

describe('ConnectionGuard', () => {
  test('does not look at connections while the machine has few sockets', () => {
    const { state, tick } = open({ '192.0.2.1': 40 })
    for (let count = 0; count < 10; count += 1) tick()
    expect(state.scans).toBe(0)
  })

  test('closes what exceeds the limit of an address', () => {
    const { state, tick } = open({ '192.0.2.1': 60, '192.0.2.2': 9 })
    tick()
    expect(state).toMatchObject({ counts: { '192.0.2.1': 40, '192.0.2.2': 9 }, holds: [] })
    expect(state.events).toEqual(['connections_closed'])
  })

  test('holds new connections while it closes what exceeds the total, and leaves room', () => {
    const { state, tick } = open({ '127.0.0.1': 500, '192.0.2.2': 9 })
    tick()
    expect(state).toMatchObject({ counts: { '127.0.0.1': 81, '192.0.2.2': 9 }, holds: [true, false] })
  })

  test('reacts at once to a burst, and otherwise looks once a second', () => {
    const { state, tick } = open({ '127.0.0.1': 60 })
    tick()
    expect(state.scans).toBe(1)
    for (let count = 0; count < 5; count += 1) tick(100)
    expect(state.scans).toBe(1)
    state.counts['127.0.0.1'] = 500
    tick(100)
    expect(state).toMatchObject({ scans: 2, counts: { '127.0.0.1': 90 } })
  })

  test('does not take sockets of other programs for connections', () => {
    const { state, tick } = open({ '192.0.2.1': 5 }, { others: 10_000 })
    for (let count = 0; count < 10; count += 1) tick()
    expect(state).toMatchObject({ scans: 1, counts: { '192.0.2.1': 5 }, holds: [true, false] })
  })

  test('gives up where the kernel does not permit it, with one line in the log', () => {
    const { state, tick } = open({ '192.0.2.1': 60 }, { isPermitted: false })
    for (let count = 0; count < 10; count += 1) tick()
    expect(state).toMatchObject({ scans: 1, events: ['connections_not_limited'] })
  })
})
