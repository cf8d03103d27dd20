import { eventually } from '@sandwire/testing'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { AnswerWait, createPatience } from './answer-wait.ts'
import { awaitReadable, closeFd, writeFd } from '../linux/libc.ts'
import { openPty, type PtyDevice } from './pty-device.ts'
import { openReadiness } from '../linux/readiness.fixture.ts'
import { TerminalLoop, TerminalReader } from './terminal-reader.ts'

let device: PtyDevice
let reader: TerminalReader
let read: string[]

/** Waits long enough for any machine. */
const patience = { ...createPatience(() => 0), sleepFor: (fd: number) => awaitReadable(fd, 900_000_000) }

beforeEach(() => {
  const opened = openPty(80, 24)
  if (typeof opened === 'number') throw new Error(`No terminal: ${opened}`)
  device = opened
  read = []
  let yields = 0
  const answers = new AnswerWait({ ...patience, now: () => (yields += 1) })
  reader = new TerminalReader(device.masterFd, new TerminalLoop(openReadiness(), answers), {
    chunk: (bytes) => read.push(new TextDecoder().decode(bytes)),
    ended: () => read.push('end'),
  })
})

afterEach(() => {
  reader.stop()
  closeFd(device.masterFd)
  closeFd(device.slaveFd)
})

function say(text: string): void {
  writeFd(device.slaveFd, new TextEncoder().encode(text))
}

test('an answer is there when the key has been typed', () => {
  reader.expectAnswer(() => say('a'))
  expect(read).toEqual(['a'])
})

test('what is said after an answer comes too, once', async () => {
  reader.expectAnswer(() => say('a'))
  say('b')
  await eventually(() => read.length > 1, { what: 'the rest' })
  say('c')
  await eventually(() => read.join('').length > 2, { what: 'what is said later' })
  expect(read.join('')).toBe('abc')
})

test('a key that is typed while reading is paused gets no answer before reading goes on', async () => {
  reader.pause()
  reader.expectAnswer(() => say('a'))
  expect(read).toEqual([])
  reader.resume()
  await eventually(() => read.length > 0, { what: 'the answer' })
  expect(read).toEqual(['a'])
})

test('a key whose typing pauses reading gets no answer before reading goes on', async () => {
  reader.expectAnswer(() => {
    say('a')
    reader.pause()
  })
  await Bun.sleep(20)
  expect(read).toEqual([])
  reader.resume()
  await eventually(() => read.length > 0, { what: 'the answer' })
  expect(read).toEqual(['a'])
})
