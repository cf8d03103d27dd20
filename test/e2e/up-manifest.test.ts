import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { eventually } from '@sandwire/testing'
import { databaseOf } from '../../apps/host/src/control/object-databases.ts'
import { type RunningHost, startHost } from './support/control.ts'

const MAIN = resolve(import.meta.dir, '../../apps/host/src/main.ts')

function listFiles(data: string, ending: string): string[] {
  const control = join(data, 'control')
  const names = readdirSync(control, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith(ending)).map((name) => join(control, name))
}

async function listSandboxes(host: RunningHost): Promise<string[]> {
  const { sandboxes } = await (await host.fetch('/api/sandboxes')).json()
  return sandboxes.map(({ name }: { name: string }) => name)
}

async function create(host: RunningHost, name: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ name, start: false })
  expect((await host.fetch('/api/sandboxes', { method: 'POST', headers, body })).status).toBe(201)
}

/** What a start prints that fails. */
async function readRefusal(data: string): Promise<string> {
  const child = Bun.spawn([process.execPath, MAIN, 'up', '--port', '0', '--data', data], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const text = await new Response(child.stderr).text()
  expect(await child.exited).not.toBe(0)
  return text
}

test('a data folder without a database that it had is refused, and a stopped one is whole without logs', async () => {
  const data = mkdtempSync(join(tmpdir(), 'sandwire-manifest-'))
  try {
    {
      await using host = await startHost({ data })
      for (const name of ['kept', 'gone']) await create(host, name)
    }
    expect([...listFiles(data, '-wal'), ...listFiles(data, '-shm')]).toEqual([])
    {
      // A crash after a sandbox was destroyed: its database is empty, and nothing is missing.
      await using host = await startHost({ data })
      expect(await listSandboxes(host)).toEqual(['gone', 'kept'])
      expect((await host.fetch('/api/sandboxes/gone', { method: 'DELETE' })).status).toBe(204)
      host.kill('SIGKILL')
      await host.exited
    }
    {
      // Again, before the manifest was written a second time.
      await using host = await startHost({ data })
      expect(await listSandboxes(host)).toEqual(['kept'])
      host.kill('SIGKILL')
      await host.exited
    }
    const logs = listFiles(data, '-wal')
    for (const log of logs) renameSync(log, `${log}.moved`)
    expect(await readRefusal(data)).toContain('the server was not stopped, and the write-ahead log')
    for (const log of logs) renameSync(`${log}.moved`, log)
    {
      await using host = await startHost({ data })
      expect(await listSandboxes(host)).toEqual(['kept'])
    }
    const database = listFiles(data, '.sqlite').find((file) => statSync(file).size > 4096) ?? ''
    renameSync(database, join(data, 'moved'))
    expect(await readRefusal(data)).toContain(`the database "${database}" is missing or empty\nhint: `)
    renameSync(join(data, 'moved'), database)
    {
      await using host = await startHost({ data })
      expect(await listSandboxes(host)).toEqual(['kept'])
    }
    rmSync(database)
    await using host = await startHost({ data, args: ['--accept-missing'] })
    expect((await host.fetch('/healthz')).status).toBe(200)
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
})

test('a killed server does not start without the database of a sandbox with files, and lists it as failed if told to', async () => {
  const data = mkdtempSync(join(tmpdir(), 'sandwire-manifest-'))
  try {
    {
      await using host = await startHost({ data })
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ name: 'dev' })
      expect((await host.fetch('/api/sandboxes', { method: 'POST', headers, body })).status).toBe(201)
      host.kill('SIGKILL')
      await host.exited
    }
    const [id = ''] = readdirSync(join(data, 'sandboxes'))
    const log = `${databaseOf(join(data, 'control'), 'sandbox', id)}-wal`
    renameSync(log, join(data, 'moved'))
    expect(await readRefusal(data)).toContain(
      `the database "${log.slice(0, -'-wal'.length)}" is missing or empty`,
    )
    renameSync(join(data, 'moved'), log)
    const databases = join(data, 'control')
    renameSync(databases, join(data, 'moved'))
    rmSync(join(data, 'manifest.json'))
    expect(await readRefusal(data)).toContain('sandboxes have files, and the database')
    rmSync(databases, { recursive: true })
    renameSync(join(data, 'moved'), databases)
    rmSync(log)
    {
      await using host = await startHost({ data, args: ['--accept-missing'] })
      const { sandboxes } = await (await host.fetch('/api/sandboxes')).json()
      expect(sandboxes).toMatchObject([{ name: 'dev', state: 'failed', reason: 'database_missing' }])
    }
    await using host = await startHost({ data })
    expect((await host.fetch('/api/sandboxes/dev', { method: 'DELETE' })).status).toBe(204)
    expect(readdirSync(join(data, 'sandboxes'))).toEqual([])
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
})

test('a database that is damaged in the middle is named when it is read', async () => {
  const data = mkdtempSync(join(tmpdir(), 'sandwire-manifest-'))
  try {
    {
      await using host = await startHost({ data })
      for (const name of ['whole', 'damaged']) await create(host, name)
    }
    const account = listFiles(data, '.sqlite').filter((file) => file.includes('/account/'))
    const file = account.find((each) => readFileSync(each).includes('damaged')) ?? ''
    const bytes = readFileSync(file)
    writeFileSync(file, bytes.fill(0xff, 4_096))
    await using host = await startHost({ data })
    expect((await host.fetch('/api/sandboxes')).status).toBe(500)
    await eventually(() => host.output().includes(`The database "${file}" is damaged: `), {
      what: 'the name of the file',
    })
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
})
