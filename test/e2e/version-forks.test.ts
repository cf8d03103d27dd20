import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInProcess } from '../../apps/cli/test/in-process.ts'
import { readDescendants } from '@sandwire/testing'
import { type RunningHost, startHost } from './support/control.ts'
import { S3_KEYS, type S3Server, startS3 } from './support/s3-server.ts'

/** A cold start on a busy machine. */
const TIMEOUT_MS = 180_000

let host: RunningHost
let s3: S3Server

beforeAll(async () => {
  s3 = await startS3('files')
  host = await startHost({
    env: {
      SANDWIRE_STORE: 's3://files/some/prefix',
      AWS_ENDPOINT_URL_S3: s3.endpoint,
      AWS_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
    },
  })
}, TIMEOUT_MS)

afterAll(async () => {
  await host.stop()
  await s3[Symbol.asyncDispose]()
}, TIMEOUT_MS)

function cli(...argv: string[]) {
  return runInProcess([...argv, '--url', host.url], {
    env: { SBX_TOKEN: host.token, npm_command: undefined },
  })
}

async function shell(sandbox: string, script: string): Promise<string> {
  const response = await host.fetch(`/api/sandboxes/${sandbox}/exec`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ cmd: 'sh', args: ['-c', script] }),
  })
  expect(response.status).toBe(200)
  const { output } = (await response.json()) as { output: string }
  return output
}

async function json(path: string): Promise<unknown> {
  return (await host.fetch(path)).json()
}

test(
  'a version is browsed, compared and forked without starting its sandbox, and the fork survives it',
  async () => {
    expect((await cli('create', 'dev')).code).toBe(0)
    // A name with a byte that is no UTF-8, a large file with a hole, and one of many small files.
    await shell(
      'dev',
      `mkdir d && printf one > d/a && printf x > "$(printf 'b\\377')" && ln -s a d/l &&
       head -c 3000000 /dev/urandom > large && truncate -s 9000000 large && sha256sum large > ~/sum`,
    )
    expect((await cli('checkpoint', 'dev', 'first')).code).toBe(0)
    await shell('dev', 'printf three > d/a && touch large && mkdir e && echo > e/f && rm d/l')
    expect((await cli('checkpoint', 'dev', 'second')).code).toBe(0)
    expect((await cli('stop', 'dev')).code).toBe(0)

    expect(await json('/files/dev')).toMatchObject({ entries: [{ name: 'home' }, { name: 'workspace' }] })
    expect(await json('/files/dev/workspace?version=first')).toMatchObject({
      path: 'workspace',
      isComplete: true,
      entries: [
        { name: 'b\udcff', kind: 'file', sizeBytes: 1 },
        { name: 'd', kind: 'folder', sizeBytes: null },
        { name: 'large', kind: 'file', sizeBytes: 9_000_000 },
      ],
    })
    expect(await json('/files/dev/workspace/d?version=first&after=a')).toMatchObject({
      entries: [{ name: 'l', kind: 'link', target: 'a' }],
    })
    expect(await (await host.fetch('/files/dev/workspace/d/a?version=first')).text()).toBe('one')
    expect(await (await host.fetch('/files/dev/workspace/d/a')).text()).toBe('three')
    expect(await (await host.fetch('/files/dev/workspace/b%ff')).text()).toBe('x')
    const large = await host.fetch('/files/dev/workspace/large')
    expect(large.headers.get('content-length')).toBe('9000000')
    expect(large.headers.get('content-disposition')).toBe('attachment')
    const sum = await (await host.fetch('/files/dev/home/sum')).text()
    const hash = new Bun.CryptoHasher('sha256').update(await large.bytes()).digest('hex')
    expect(sum.split(' ')[0]).toBe(hash)
    for (const [path, code] of [
      ['workspace/none', 'file_not_found'],
      ['workspace/d/a/b', 'file_not_found'],
      ['workspace/d/l?version=first', 'special_file'],
      ['workspace/%2e%2e/x', 'file_not_found'],
      ['workspace/a%00b', 'path_refused'],
      ['workspace/a%2fb', 'file_not_found'],
      ['workspace?version=none', 'not_found'],
      ['workspace?path=x', 'bad_request'],
    ])
      expect([path, await json(`/files/dev/${path}`)]).toMatchObject([path, { error: { code } }])

    expect(await json('/api/sandboxes/dev/checkpoints/first/diff?to=second')).toMatchObject({
      changes: [
        { path: 'workspace/e', change: 'added', kind: 'folder' },
        { path: 'workspace/d/a', change: 'modified', beforeBytes: 3, afterBytes: 5 },
        { path: 'workspace/d/l', change: 'removed', kind: 'link' },
        { path: 'workspace/e/f', change: 'added', beforeBytes: null, afterBytes: 1 },
      ],
      isComplete: true,
    })
    const shown = (await cli('diff', 'dev@first', 'dev@second')).stdout.toString()
    expect(shown).toMatch(/modified +3 +5 +workspace\/d\/a/)
    expect((await cli('diff', 'dev@second')).stderr).toContain('the same files')
    expect(await json('/api/sandboxes/dev')).toMatchObject({ state: 'stopped' })

    expect((await cli('fork', 'dev@first', 'dev')).stderr).toContain('exists already')
    expect((await cli('fork', 'dev@first', 'copy')).stderr).toContain('copy has the files of dev@first')
    expect(await shell('copy', 'cat d/a && readlink d/l && sha256sum -c ~/sum')).toBe('onea\nlarge: OK\n')
    expect((await cli('rm', 'dev', '--force')).code).toBe(0)
    await shell('copy', 'echo more > more')
    expect((await cli('checkpoint', 'copy', 'own')).code).toBe(0)
    expect((await cli('stop', 'copy')).code).toBe(0)
    expect((await cli('restore', 'copy@own')).code).toBe(0)
    expect(await shell('copy', 'cat d/a more && sha256sum -c ~/sum')).toBe('onemore\nlarge: OK\n')
    expect((await cli('fork', 'copy@own', 'second')).code).toBe(0)
    expect(await shell('second', 'cat d/a more && sha256sum -c ~/sum')).toBe('onemore\nlarge: OK\n')
  },
  TIMEOUT_MS,
)

test(
  'the list says what is kept, and the log of a destroyed sandbox can still be read',
  async () => {
    expect((await cli('create', 'short')).code).toBe(0)
    for (const name of ['one', 'two', 'three']) expect((await cli('checkpoint', 'short', name)).code).toBe(0)
    expect((await cli('checkpoints', 'short')).stderr).toContain('kept are 10 automatic versions')
    const account = await host.fetch('/api/account/retention', {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ automaticVersions: 7 }),
    })
    expect(await account.json()).toEqual({ automaticVersions: 7, checkpointDays: null })
    expect((await cli('checkpoints', 'short', '--keep-days', '30')).stderr).toContain(
      'kept are 7 automatic versions, and checkpoints for 30 days',
    )
    expect(await json('/api/sandboxes/short/checkpoints')).toMatchObject({
      versions: [{ name: 'three' }, { name: 'two' }, { name: 'one' }],
      retention: { automaticVersions: 7, checkpointDays: 30 },
    })
    const before = await (await host.fetch('/logs/short')).text()
    expect(before).toContain('"event":"running"')
    expect((await cli('rm', 'short', '--force')).code).toBe(0)
    const after = await host.fetch('/logs/short')
    expect([after.status, (await after.text()).startsWith(before.split('\n')[0] ?? '-')]).toEqual([200, true])
    expect((await host.fetch('/logs/never')).status).toBe(404)
  },
  TIMEOUT_MS,
)

test(
  'a fork survives a server that is restored from before it, and the destruction of its parent there',
  async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-forks-'))
    try {
      let server = await startHost({ data })
      const run = (...argv: string[]) =>
        runInProcess([...argv, '--url', server.url], {
          env: { SBX_TOKEN: server.token, npm_command: undefined },
        })
      const restart = async (between: () => void): Promise<void> => {
        await server.stop()
        between()
        server = await startHost({ data })
      }
      const databases = join(data, 'control/sandbox')
      const backup = join(data, 'older')
      expect((await run('create', 'parent')).code).toBe(0)
      const body = JSON.stringify({
        cmd: 'sh',
        args: ['-c', 'head -c 100000 /dev/urandom > a && sha256sum a > b'],
      })
      const headers = { 'content-type': 'application/json' }
      const made = await server.fetch('/api/sandboxes/parent/exec', { method: 'POST', headers, body })
      expect(made.status).toBe(200)
      expect((await run('checkpoint', 'parent', 'first')).code).toBe(0)
      expect((await run('stop', 'parent')).code).toBe(0)
      await restart(() => cpSync(databases, backup, { recursive: true }))
      const fork = await server.fetch('/api/sandboxes/parent/checkpoints/first/fork', {
        method: 'POST',
        headers,
        body: '{"name":"copy","start":false}',
      })
      expect(fork.status).toBe(201)
      await restart(() => {
        for (const name of readdirSync(backup)) cpSync(join(backup, name), join(databases, name))
      })
      expect((await run('checkpoints', 'parent', '--rebuild')).code).toBe(0)
      expect((await run('rm', 'parent', '--force')).code).toBe(0)
      const check = JSON.stringify({ cmd: 'sha256sum', args: ['-c', 'b'] })
      const checked = await server.fetch('/api/sandboxes/copy/exec', { method: 'POST', headers, body: check })
      expect(await checked.json()).toMatchObject({ output: 'a: OK\n' })
      await server.stop()
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  },
  TIMEOUT_MS,
)

test('versions are in the bucket, and its secret key is in no log, argument or environment of a child', () => {
  expect(readdirSync(join(s3.directory, 'files/some/prefix')).toSorted()).toEqual(['forks', 'segments'])
  expect(host.output()).not.toContain('canary')
  for (const { pid } of readDescendants(host.pid))
    for (const file of ['cmdline', 'environ'])
      expect([pid, file, readFileSync(`/proc/${pid}/${file}`, 'latin1').includes('canary')]).toEqual([
        pid,
        file,
        false,
      ])
})
