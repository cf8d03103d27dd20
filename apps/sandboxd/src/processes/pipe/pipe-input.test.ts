import { expect, test } from 'bun:test'
import { closeSync, fstatSync, openSync } from 'node:fs'
import { closeFd } from '../linux/libc.ts'
import { PipeInput } from './pipe-input.ts'
import { openPipes } from './pipes.ts'

test('closes its descriptor once when it is abandoned while the pipe is full', async () => {
  const pipes = openPipes()
  if (pipes === undefined) throw new Error('No descriptors')
  const [reader, ...unused] = [pipes.child[0], pipes.child[1], pipes.child[2], pipes.stdout, pipes.stderr]
  let settled = 0
  const input = new PipeInput(pipes.stdin, {
    settled: (bytes) => void (settled += bytes),
    closed: () => undefined,
  })
  input.write(new Uint8Array(3_000_000))
  expect(settled).toBeGreaterThan(0)
  input.abandon()
  expect(settled).toBe(3_000_000)
  // The reader's end wakes the poller, after which the descriptor is closed and its number can be reused.
  closeFd(reader)
  const files: number[] = []
  for (let turn = 0; turn < 50; turn += 1) {
    await Bun.sleep(1)
    files.push(openSync('/dev/null', 'r'))
  }
  expect(files).toContain(pipes.stdin)
  for (const file of files) expect(fstatSync(file).isCharacterDevice()).toBe(true)
  for (const fd of [...files, ...unused]) closeSync(fd)
})
