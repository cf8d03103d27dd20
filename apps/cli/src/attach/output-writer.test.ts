import { describe, expect, test } from 'bun:test'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { eventually } from '@sandwire/testing'
import { OutputWriter } from './output-writer.ts'

/** A named pipe with both ends open here. */
function openPipe() {
  const folder = mkdtempSync(path.join(tmpdir(), 'writer-'))
  const name = path.join(folder, 'pipe')
  Bun.spawnSync(['mkfifo', name])
  const reader = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(name, constants.O_WRONLY)
  rmSync(folder, { recursive: true })
  return { reader, writer }
}

const flagsOf = (fd: number): string =>
  /flags:\s+(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? ''

describe('OutputWriter', () => {
  test('resolves in order when the reader has read, and does not change the flags of the pipe', async () => {
    const { reader, writer } = openPipe()
    const flags = flagsOf(writer)
    const output = new OutputWriter(writer, () => {})
    const done: number[] = []
    const chunks = Array.from({ length: 40 }, (_, index) => new Uint8Array(16 * 1024).fill(index))
    const all = Promise.all(chunks.map((chunk, index) => output.write(chunk).then(() => done.push(index))))
    await eventually(() => done.length > 0, { what: 'the first chunks to fit into the pipe' })
    expect(done.length).toBeLessThan(40)
    const received: Uint8Array[] = []
    const buffer = new Uint8Array(64 * 1024)
    while (received.reduce((sum, each) => sum + each.length, 0) < 40 * 16 * 1024) {
      try {
        received.push(buffer.slice(0, readSync(reader, buffer)))
      } catch {
        // The pipe is empty for the moment.
        await Bun.sleep(1)
      }
    }
    await all
    await output.drained()
    expect(Buffer.concat(received)).toEqual(Buffer.concat(chunks))
    expect(done).toEqual(chunks.map((_, index) => index))
    expect(flagsOf(writer)).toBe(flags)
    closeSync(reader)
    closeSync(writer)
  })

  test('reports a closed reader once, and resolves later writes at once', async () => {
    const { reader, writer } = openPipe()
    const broken: string[] = []
    const output = new OutputWriter(writer, (code) => broken.push(code))
    closeSync(reader)
    await Promise.all([output.write(new Uint8Array(10)), output.write(new Uint8Array(10))])
    await output.write(new Uint8Array(10))
    await output.drained()
    expect(broken).toEqual(['EPIPE'])
    closeSync(writer)
  })

  test('waits for a descriptor that another program made non-blocking', async () => {
    const { reader, writer: blocking } = openPipe()
    const writer = openSync(`/proc/self/fd/${blocking}`, constants.O_WRONLY | constants.O_NONBLOCK)
    const output = new OutputWriter(writer, () => {})
    const all = output.write(new Uint8Array(200_000))
    const buffer = new Uint8Array(64 * 1024)
    let total = 0
    await eventually(
      () => {
        total += readSync(reader, buffer)
        return total === 200_000
      },
      { what: 'all bytes' },
    )
    await all
    for (const fd of [reader, writer, blocking]) closeSync(fd)
  })

  test('resolves pending writes when it is closed', async () => {
    const { reader, writer: blocking } = openPipe()
    const writer = openSync(`/proc/self/fd/${blocking}`, constants.O_WRONLY | constants.O_NONBLOCK)
    const broken: string[] = []
    const output = new OutputWriter(writer, (code) => broken.push(code))
    const waiting = [output.write(new Uint8Array(1024 * 1024)), output.write(new Uint8Array(10))]
    output.close()
    await Promise.all(waiting)
    await output.drained()
    closeSync(writer)
    await output.write(new Uint8Array(10))
    expect(broken).toEqual([])
    closeSync(reader)
    closeSync(blocking)
  })
})
