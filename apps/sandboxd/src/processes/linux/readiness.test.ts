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

describe.each([true, false])('readiness with asynchronous requests: %p', (canUseAio) => {
  const readiness = openReadiness({ canUseAio })

  test('tells again and again until what is there was read, and then not any more', async () => {
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

  test('says nothing of a descriptor that is no longer watched', async () => {
    const [first, second] = [open(), open()]
    const told: string[] = []
    readiness.watch(first.masterFd, () => told.push('first'))
    readiness.unwatch(first.masterFd)
    readiness.watch(second.masterFd, () => {
      told.push('second')
      readiness.unwatch(second.masterFd)
    })
    writeFd(first.slaveFd, new Uint8Array([1]))
    writeFd(second.slaveFd, new Uint8Array([1]))
    await eventually(() => told.length > 0, { what: 'the second' })
    expect(told).toEqual(['second'])
  })

  test('says nothing of a descriptor that is held, and what came meanwhile when it is released', async () => {
    const [first, second] = [open(), open()]
    const told: string[] = []
    const listen = (name: string, { masterFd }: PtyDevice): void =>
      readiness.watch(masterFd, () => {
        told.push(name)
        readiness.unwatch(masterFd)
      })
    listen('first', first)
    listen('second', second)
    readiness.hold(first.masterFd)
    writeFd(first.slaveFd, new Uint8Array([1]))
    writeFd(second.slaveFd, new Uint8Array([1]))
    await eventually(() => told.length > 0, { what: 'the second' })
    expect(told).toEqual(['second'])
    readiness.release(first.masterFd)
    await eventually(() => told.length > 1, { what: 'the first' })
    expect(told).toEqual(['second', 'first'])
  })

  test('releases nothing that is not watched', async () => {
    const [first, second] = [open(), open()]
    const told: string[] = []
    readiness.watch(first.masterFd, () => told.push('first'))
    readiness.unwatch(first.masterFd)
    readiness.release(first.masterFd)
    writeFd(first.slaveFd, new Uint8Array([1]))
    readiness.watch(second.masterFd, () => {
      told.push('second')
      readiness.unwatch(second.masterFd)
    })
    writeFd(second.slaveFd, new Uint8Array([1]))
    await eventually(() => told.length > 0, { what: 'the second' })
    expect(told).toEqual(['second'])
  })
})
