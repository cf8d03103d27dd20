import { eventually } from '@sandwire/testing'
import { afterEach, describe, expect, test } from 'bun:test'
import { closeFd, readFd, writeFd } from './libc.ts'
import { openPty, type PtyDevice } from '../terminal/pty-device.ts'
import { openReadiness } from './readiness.fixture.ts'

const devices: PtyDevice[] = []

function open(): PtyDevice {
  const device = openPty(80, 24)
  if (typeof device === 'number') throw new Error(`No terminal: ${device}`)
  devices.push(device)
  return device
}

afterEach(() => {
  for (const { masterFd, slaveFd } of devices.splice(0)) {
    closeFd(masterFd)
    closeFd(slaveFd)
  }
})

describe.each([true, false])('Readiness, asynchronous requests: %p', (canUseAio) => {
  const readiness = openReadiness({ canUseAio })

  test('reports a descriptor in every turn until it was read', async () => {
    const { masterFd, slaveFd } = open()
    let calls = 0
    const read: number[] = []
    readiness.watch(masterFd, () => {
      calls += 1
      if (calls < 200) return
      read.push(readFd(masterFd, new Uint8Array(10)))
    })
    writeFd(slaveFd, new Uint8Array([1, 2, 3]))
    await eventually(() => read.length === 1, { what: 'the read' })
    writeFd(slaveFd, new Uint8Array([4]))
    await eventually(() => read.length === 2, { what: 'the second read' })
    readiness.unwatch(masterFd)
    expect(read).toEqual([3, 1])
    expect(calls).toBe(201)
  })

  test('does not report a descriptor that is no longer watched', async () => {
    const [first, second] = [open(), open()]
    const events: string[] = []
    readiness.watch(first.masterFd, () => events.push('first'))
    readiness.unwatch(first.masterFd)
    readiness.watch(second.masterFd, () => {
      events.push('second')
      readiness.unwatch(second.masterFd)
    })
    writeFd(first.slaveFd, new Uint8Array([1]))
    writeFd(second.slaveFd, new Uint8Array([1]))
    await eventually(() => events.length > 0, { what: 'the second' })
    expect(events).toEqual(['second'])
  })

  test('does not report a held descriptor until it is released', async () => {
    const [first, second] = [open(), open()]
    const events: string[] = []
    const listen = (name: string, { masterFd }: PtyDevice): void =>
      readiness.watch(masterFd, () => {
        events.push(name)
        readiness.unwatch(masterFd)
      })
    listen('first', first)
    listen('second', second)
    readiness.hold(first.masterFd)
    writeFd(first.slaveFd, new Uint8Array([1]))
    writeFd(second.slaveFd, new Uint8Array([1]))
    await eventually(() => events.length > 0, { what: 'the second' })
    expect(events).toEqual(['second'])
    readiness.release(first.masterFd)
    await eventually(() => events.length > 1, { what: 'the first' })
    expect(events).toEqual(['second', 'first'])
  })

  test('ignores the release of a descriptor that is not watched', async () => {
    const [first, second] = [open(), open()]
    const events: string[] = []
    readiness.watch(first.masterFd, () => events.push('first'))
    readiness.unwatch(first.masterFd)
    readiness.release(first.masterFd)
    writeFd(first.slaveFd, new Uint8Array([1]))
    readiness.watch(second.masterFd, () => {
      events.push('second')
      readiness.unwatch(second.masterFd)
    })
    writeFd(second.slaveFd, new Uint8Array([1]))
    await eventually(() => events.length > 0, { what: 'the second' })
    expect(events).toEqual(['second'])
  })
})
