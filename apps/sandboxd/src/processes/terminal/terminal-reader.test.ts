import { eventually } from '@sandwire/testing'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { EchoWait, createWaitCalls } from './echo-wait.ts'
import { awaitReadable, closeFd, writeFd } from '../linux/libc.ts'
import { openPty, type PtyDevice } from './pty-device.ts'
import { openReadiness } from '../linux/readiness.fixture.ts'
import { TerminalLoop, TerminalReader } from './terminal-reader.ts'

let device: PtyDevice
let reader: TerminalReader
let read: string[]

/** Echo timeouts that are long enough on any machine. */
const waitCalls = { ...createWaitCalls(() => 0), sleepFor: (fd: number) => awaitReadable(fd, 900_000_000) }

beforeEach(() => {
  const opened = openPty(80, 24)
  if (typeof opened === 'number') throw new Error(`No terminal: ${opened}`)
  device = opened
  read = []
  let yields = 0
  const echoWait = new EchoWait({ ...waitCalls, now: () => (yields += 1) })
  reader = new TerminalReader(device.masterFd, new TerminalLoop(openReadiness(), echoWait), {
    chunk: (bytes) => read.push(new TextDecoder().decode(bytes)),
    ended: () => read.push('end'),
  })
})

afterEach(() => {
  reader.stop()
  closeFd(device.masterFd)
  closeFd(device.slaveFd)
})

function print(text: string): void {
  writeFd(device.slaveFd, new TextEncoder().encode(text))
}

test('an echo is read before writeAndAwaitEcho returns', () => {
  reader.writeAndAwaitEcho(() => print('a'))
  expect(read).toEqual(['a'])
})

test('output after an echo is delivered once', async () => {
  reader.writeAndAwaitEcho(() => print('a'))
  print('b')
  await eventually(() => read.length > 1, { what: 'the rest' })
  print('c')
  await eventually(() => read.join('').length > 2, { what: 'later output' })
  expect(read.join('')).toBe('abc')
})

test('no echo is read while reading is paused', async () => {
  reader.pause()
  reader.writeAndAwaitEcho(() => print('a'))
  expect(read).toEqual([])
  reader.resume()
  await eventually(() => read.length > 0, { what: 'the echo' })
  expect(read).toEqual(['a'])
})

test('no echo is read when writing pauses the reader', async () => {
  reader.writeAndAwaitEcho(() => {
    print('a')
    reader.pause()
  })
  await Bun.sleep(20)
  expect(read).toEqual([])
  reader.resume()
  await eventually(() => read.length > 0, { what: 'the echo' })
  expect(read).toEqual(['a'])
})
