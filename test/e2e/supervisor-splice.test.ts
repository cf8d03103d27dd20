import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import path from 'node:path'
import { eventually } from '@sandwire/testing'
import { FLOOD_CHUNK } from './support/flood-daemon.ts'
import { expectRunning } from './support/keeper-contract.ts'
import { KeptSandboxes } from './support/kept-sandboxes.ts'
import { readResidentBytes, traceMemory } from './support/memory.ts'

const MEBIBYTE = 1024 * 1024
/** How long a stall is looked at. */
const LOOK_MS = 3_000
/** Bytes that go through before memory is measured, so that the runtime has all the buffers it will have. */
const WARM_UP_BYTES = 512 * MEBIBYTE

let kept: KeptSandboxes
let port: number
let supervisorPid: number

beforeAll(async () => {
  const code = { folder: path.join(import.meta.dir, 'support'), entry: 'flood-daemon.ts' }
  kept = await KeptSandboxes.open('none', { executable: process.execPath, code })
  const spec = kept.spec()
  port = Number(new URL(expectRunning(await kept.keeper.start(spec)).address).port)
  supervisorPid = kept.supervisorPid(spec.id)
})
afterAll(() => kept[Symbol.asyncDispose]())

async function dial(what: 'f' | 's' | 'e'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => undefined)
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()))
  socket.write(what)
  return socket
}

/** Reads a flood and counts the bytes that are not where they should be. */
class FloodReader {
  receivedBytes = 0
  wrongChunks = 0

  constructor(socket: Socket) {
    socket.on('data', (bytes: Buffer) => this.#receive(bytes))
  }

  #receive(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      const from = this.receivedBytes % FLOOD_CHUNK.length
      const part = bytes.subarray(at, at + FLOOD_CHUNK.length - from)
      if (part.compare(FLOOD_CHUNK, from, from + part.length) !== 0) this.wrongChunks += 1
      this.receivedBytes += part.length
      at += part.length
    }
  }
}

describe('the splice of a supervisor', () => {
  test('(threat T26) holds nothing for a reader that stalls, and goes on at the exact byte', async () => {
    const socket = await dial('f')
    const reader = new FloodReader(socket)
    const passed = (bytes: number) =>
      eventually(() => reader.receivedBytes > bytes, { what: `${bytes} bytes`, timeoutMs: 30_000 })
    await passed(WARM_UP_BYTES)
    socket.pause()
    const before = readResidentBytes(supervisorPid)
    const { highest } = await traceMemory(supervisorPid, LOOK_MS)
    expect(highest - before).toBeLessThanOrEqual(MEBIBYTE)
    socket.resume()
    await passed(reader.receivedBytes + WARM_UP_BYTES)
    expect(reader.wrongChunks).toBe(0)
    socket.destroy()
  })

  test('(threat T28) holds nothing for a daemon that does not read', async () => {
    const chunk = Buffer.alloc(MEBIBYTE)
    const echo = await dial('e')
    let echoedBytes = 0
    echo.on('data', (bytes: Buffer) => {
      echoedBytes += bytes.length
    })
    for (let sent = 0; sent < 64; sent += 1)
      if (!echo.write(chunk)) await new Promise<void>((resolve) => echo.once('drain', () => resolve()))
    await eventually(() => echoedBytes >= 64 * MEBIBYTE, { what: 'the warm-up', timeoutMs: 30_000 })
    echo.destroy()
    const socket = await dial('s')
    const before = readResidentBytes(supervisorPid)
    for (let sent = 0; sent < 64; sent += 1) socket.write(chunk)
    const { highest } = await traceMemory(supervisorPid, LOOK_MS)
    expect(socket.writableLength).toBeGreaterThan(32 * MEBIBYTE)
    expect(highest - before).toBeLessThanOrEqual(MEBIBYTE)
    socket.destroy()
  })
})
