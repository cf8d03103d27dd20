import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readShell } from './support/attached.ts'
import { type HostOptions, type RunningHost, startHost } from './support/control.ts'
import { AS_NOBODY, NOBODY, nobodyProblem } from './support/nobody.ts'
import type { WireServer } from './support/wire-server.ts'

const isRoot = process.getuid?.() === 0
/** Folders for sandbox sockets and mount points, by the user of the host. */
const RUN_BASES = ['/run/sandwire', `/tmp/sandwire-${NOBODY}`]

/** Creates folders nested deeper than the longest path, by descending a hundred at a time. */
const NEST = `i=0; while [ $i -lt 20 ]; do mkdir -p ${'d/'.repeat(100)} && cd -P ${'d/'.repeat(100)} || exit 1; i=$((i + 1)); done 2>/dev/null; echo made`
const LOCK = 'mkdir -p h/i; touch h/i/x; chmod 000 h/i h; echo made'

let folder = ''
let data = ''
beforeEach(() => {
  folder = mkdtempSync('/tmp/up-removal-')
  data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Options for a host whose user is subject to file modes; without root, every user is. */
function optionsForNobody(): HostOptions {
  if (!isRoot) return { data }
  for (const each of [folder, data]) chownSync(each, NOBODY, NOBODY)
  return {
    data,
    prefix: AS_NOBODY,
    env: { HOME: folder, XDG_RUNTIME_DIR: undefined },
  }
}

function sandboxOf(host: RunningHost, sandbox: string): WireServer {
  return {
    port: host.port,
    headers: host.headers,
    sandbox,
    socketUrl: (path) => {
      const url = new URL(path, `ws://127.0.0.1:${host.port}`)
      url.searchParams.set('sandbox', sandbox)
      return url.href
    },
    fetch: host.fetch,
    stop: host.stop,
  }
}

async function create(host: RunningHost, name: string): Promise<string> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  }
  const response = await host.fetch('/api/sandboxes', init)
  expect(response.status).toBe(201)
  const { id } = await response.json()
  return String(id)
}

async function destroy(host: RunningHost, name: string): Promise<number> {
  return (await host.fetch(`/api/sandboxes/${name}`, { method: 'DELETE' })).status
}

function listObjects(): string[] {
  return readdirSync(join(data, 'control/sandbox')).filter((name) => /^[0-9a-f]{64}/.test(name))
}

describe('a destroyed sandbox', () => {
  test.skipIf(nobodyProblem !== undefined).each([
    ['locked folders', LOCK],
    ['deep folders', NEST],
  ])(
    'has its %s removed, and another of its name can be created and destroyed (threat T32)',
    async (_what, script) => {
      await using host = await startHost(optionsForNobody())
      const id = await create(host, 'dev')
      expect(await readShell(sandboxOf(host, 'dev'), script)).toBe('made\n')
      expect(await destroy(host, 'dev')).toBe(204)
      expect(readdirSync(join(data, 'isolation/files'))).not.toContain(id)
      await create(host, 'dev')
      expect(await destroy(host, 'dev')).toBe(204)
    },
  )

  test('leaves no database behind once the host restarts', async () => {
    const first = await startHost({ data })
    await create(first, 'kept')
    for (const name of ['a', 'b']) {
      await create(first, name)
      expect(await destroy(first, name)).toBe(204)
    }
    await first.stop()
    await using second = await startHost({ data })
    expect(new Set(listObjects().map((name) => name.slice(0, 64))).size).toBe(1)
    expect((await second.fetch('/api/sandboxes/kept')).status).toBe(200)
    expect(await readShell(sandboxOf(second, 'kept'), 'echo on')).toBe('on\n')
    expect(await destroy(second, 'kept')).toBe(204)
  })
})

test('a stopped sandbox leaves only its files', async () => {
  await using host = await startHost({ data })
  const id = await create(host, 'dev')
  expect(await readShell(sandboxOf(host, 'dev'), 'echo mine > file; echo made')).toBe('made\n')
  const run = RUN_BASES.filter((base) => existsSync(base))
    .flatMap((base) => readdirSync(base).map((name) => join(base, name)))
    .filter((each) => each.endsWith(`-${id}`))
  expect(run).toHaveLength(1)
  expect((await host.fetch('/api/sandboxes/dev/stop', { method: 'POST' })).status).toBe(200)
  expect(run.filter((each) => existsSync(each))).toEqual([])
  expect(await readShell(sandboxOf(host, 'dev'), 'cat file')).toBe('mine\n')
  await host.stop()
  expect(run.filter((each) => existsSync(each))).toEqual([])
})
