import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ReserveFile } from './reserve-file.ts'

test('holds blocks, gives them back, and stays as it is when the disk has not enough', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'reserve-'))
  const file = path.join(folder, 'reserve')
  try {
    using reserve = new ReserveFile(file)
    expect(reserve.bytes).toBe(0)
    expect(reserve.resize(1024 ** 2)).toBe(1024 ** 2)
    expect(statSync(file).blocks * 512).toBeGreaterThanOrEqual(1024 ** 2)
    expect(reserve.resize(64 * 1024)).toBe(64 * 1024)
    // Larger than any disk.
    expect(reserve.resize(2 ** 60)).toBe(64 * 1024)
    expect(statSync(file).size).toBe(64 * 1024)
    expect(reserve.resize(0)).toBe(0)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
