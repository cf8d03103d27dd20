import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { identifyProcess } from '../data/process-identity.ts'
import { pinDatabases } from './pinned-databases.ts'

/** Writes the same number into many databases, one after the other: at any moment the first is at most one ahead of the last. */
const WRITER = `
import { Database } from 'bun:sqlite'
const folder = process.argv[2]
const all = Array.from({ length: 40 }, (_, at) => new Database(folder + '/' + String(at).padStart(2, '0') + '.sqlite'))
for (const db of all) db.run('PRAGMA journal_mode = WAL'), db.run('PRAGMA synchronous = OFF'), db.run('CREATE TABLE t (n INTEGER)'), db.run('INSERT INTO t VALUES (0)')
console.log('ready')
for (let n = 1; ; n += 1) for (const db of all) db.run('UPDATE t SET n = ?', [n])
`

test('pins all databases of a running process at one moment, and lets it go on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-pins-'))
  const objects = join(folder, 'objects')
  mkdirSync(objects)
  const script = join(folder, 'writer.ts')
  writeFileSync(script, WRITER)
  await using writer = Bun.spawn([process.execPath, script, objects], { stdout: 'pipe', stderr: 'ignore' })
  try {
    await writer.stdout.getReader().read()
    const readPinned = async () => {
      using pinned = await pinDatabases(objects, identifyProcess(writer.pid))
      return pinned.databases.map((pin) => {
        const file = join(folder, 'copy.sqlite')
        writeFileSync(file, pin.read())
        using copy = new Database(file)
        return (copy.query('SELECT n FROM t').get() as { n: number }).n
      })
    }
    let last = 0
    for (let round = 0; round < 5; round += 1) {
      // It writes again after each pin, once it gets its turn on a busy machine: else this does not end.
      let first = last
      while (first === last) {
        const numbers = await readPinned()
        expect(numbers).toHaveLength(40)
        first = numbers[0] ?? 0
        expect(first - (numbers.at(-1) ?? 0)).toBeOneOf([0, 1])
      }
      expect(first).toBeGreaterThan(last)
      last = first
    }
  } finally {
    writer.kill()
    await writer.exited
    rmSync(folder, { recursive: true })
  }
})
