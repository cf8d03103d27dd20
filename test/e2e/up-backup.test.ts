import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { openBackupStore } from '../../apps/host/src/backup/backup-store.ts'
import { startHost } from './support/control.ts'
import { S3_KEYS, startS3 } from './support/s3-server.ts'
import { makeSignInLink } from './support/workbench.ts'

const MAIN = resolve(import.meta.dir, '../../apps/host/src/main.ts')
/** A cold start on a busy machine, twice. */
const TIMEOUT_MS = 180_000

async function sandwire(...argv: string[]): Promise<{ code: number; output: string }> {
  const child = Bun.spawn([process.execPath, MAIN, ...argv], { stdout: 'pipe', stderr: 'pipe' })
  const output = (await new Response(child.stdout).text()) + (await new Response(child.stderr).text())
  return { code: await child.exited, output }
}

test(
  'a backup of a running server is one consistent point, and a new folder made from it has its accounts and sandboxes',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandwire-backup-'))
    // The store outlives the data folder, as one on another disk or a bucket does.
    const env = { SANDWIRE_STORE: join(folder, 'store') }
    const file = join(folder, 'backup.tar.gz')
    const restored = join(folder, 'restored')
    try {
      const first = await startHost({ env })
      const post = async (path: string, body: object = {}): Promise<Response> => {
        const init = {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }
        return first.fetch(path, init)
      }
      expect((await post('/api/sandboxes', { name: 'dev' })).status).toBe(201)
      const run = { cmd: 'sh', args: ['-c', 'echo kept > file; echo rc > ~/.rc'] }
      expect((await post('/api/sandboxes/dev/exec', run)).status).toBe(200)
      expect((await post('/api/sandboxes/dev/checkpoints', { name: 'first' })).status).toBe(201)

      // Writes go on: each sandbox is in its own database and in the account's.
      let isDone = false
      const made: string[] = []
      const write = (async () => {
        for (let number = 0; !isDone; number += 1) {
          const response = await post('/api/sandboxes', { name: `n${number}`, start: false })
          if (response.status === 201) made.push(`n${number}`)
          else await response.body?.cancel()
          if (made.length >= 60) break
        }
      })()
      while (made.length < 5) await Bun.sleep(20)
      const before = made.length
      const backup = await sandwire('backup', file, '--data', first.data)
      expect(backup).toMatchObject({ code: 0, output: expect.stringContaining('databases') })
      isDone = true
      await write
      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect((await sandwire('backup', file, '--data', first.data)).output).toContain('it exists')
      // Control goes on.
      expect((await first.fetch('/readyz')).status).toBe(200)
      const token = first.token
      await first.stop()

      expect(await sandwire('restore', file, '--data', restored)).toMatchObject({ code: 0 })
      expect((await sandwire('restore', file, '--data', restored)).output).toContain('it is not empty')
      await using second = await startHost({ env, data: restored })
      expect(second.token).toBe(token)
      const { sandboxes } = (await (await second.fetch('/api/sandboxes')).json()) as {
        sandboxes: { name: string }[]
      }
      const names = sandboxes.map(({ name }) => name)
      expect(names).toEqual(expect.arrayContaining(['dev', ...made.slice(0, before)]) as string[])
      // An account never lists a sandbox that the backup does not have.
      for (const name of names) expect((await second.fetch(`/api/sandboxes/${name}`)).status).toBe(200)
      // The files come from the store.
      const read = await second.fetch('/api/sandboxes/dev/exec', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cmd: 'sh', args: ['-c', 'cat file ~/.rc'] }),
      })
      expect(await read.json()).toMatchObject({ output: 'kept\nrc\n' })
      const link = new URL(await makeSignInLink(second))
      const signedIn = await fetch(`${second.url}/api/signin`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: link.origin, host: link.host },
        body: JSON.stringify({ code: link.hash.slice(1) }),
      })
      expect(signedIn.status).toBe(204)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  TIMEOUT_MS,
)

test('a file that is no backup is refused', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-backup-'))
  try {
    const restore = async (files: Record<string, string>): Promise<string> => {
      const file = join(folder, 'x.tar.gz')
      await Bun.write(file, await new Bun.Archive(files, { compress: 'gzip' }).bytes())
      return (await sandwire('restore', file, '--data', join(folder, 'new'))).output
    }
    const information = '{"version":"0","createdMs":0,"databases":0}'
    expect(await restore({ 'backup.json': information, 'keys/../../escaped': 'x' })).toContain('not a backup')
    expect(await restore({ 'backup.json': information, 'cache/control.js': 'x' })).toContain('not a backup')
    expect(await restore({ format: '3\n' })).toContain('not a backup')
    await Bun.write(join(folder, 'text'), 'text')
    expect((await sandwire('restore', join(folder, 'text'), '--data', join(folder, 'new'))).output).toContain(
      'not a backup',
    )
    expect(() => readFileSync(join(folder, 'escaped'))).toThrow()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('backups are kept in a bucket of an S3-compatible service', async () => {
  await using server = await startS3('backups')
  const s3 = { endpoint: server.endpoint, region: 'us-east-1', bucket: 'backups', prefix: 'some/prefix' }
  const secrets = { awsAccessKeyId: S3_KEYS.accessKeyId, awsSecretAccessKey: S3_KEYS.secretAccessKey }
  const store = openBackupStore({ s3 }, secrets)
  if (store === undefined) throw new Error('There is no store')
  expect(await store.list()).toEqual([])
  await store.put('20260131t093000z', new TextEncoder().encode('second'))
  await store.put('20260130t093000z', new TextEncoder().encode('first'))
  expect(await store.list()).toEqual(['20260130t093000z', '20260131t093000z'])
  await store.delete('20260130t093000z')
  expect(await store.list()).toEqual(['20260131t093000z'])
})
