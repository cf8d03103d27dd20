import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runShell } from './support/attached.ts'
import { readLines } from './support/lines.ts'
import { startSandboxd } from './support/sandboxd.ts'

const MAIN = resolve(import.meta.dir, '../../apps/sandboxd/src/main.ts')
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandwire-start-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function writeSecret(name: string): string {
  const file = join(folder, name)
  writeFileSync(file, '0123456789abcdef0123', { mode: 0o600 })
  return file
}

/** Runs sandboxd until it exits. */
async function runFailing(
  args: readonly string[],
): Promise<{ code: number; stderr: string; stdout: string }> {
  const child = Bun.spawn([process.execPath, MAIN, '--workspace', folder, ...args], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, stderr, stdout }
}

/** A sandboxd on a unix socket; insecure, so that only the socket's permissions matter. */
async function startOnSocket(path: string): Promise<Bun.Subprocess<'ignore', 'pipe', 'ignore'>> {
  const child = Bun.spawn(
    [process.execPath, MAIN, '--workspace', folder, '--insecure', '--listen', `unix:${path}`],
    {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
    },
  )
  await readLines(child.stdout).next()
  return child
}

describe('a start that cannot listen', () => {
  test('fails in one line on a port that is in use, and keeps the secret file', async () => {
    await using first = await startSandboxd()
    const secret = writeSecret('taken')
    const { code, stderr, stdout } = await runFailing([
      '--listen',
      `127.0.0.1:${first.port}`,
      '--secret-file',
      secret,
    ])
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^sandboxd: cannot listen on "127\.0\.0\.1:\d+": EADDRINUSE\nhint: .*\n$/)
    expect(existsSync(secret)).toBe(true)
    expect((await first.fetch('/sessions')).status).toBe(200)
  })

  test('fails on an address of another machine', async () => {
    const { code, stderr } = await runFailing([
      '--listen',
      '203.0.113.7:8080',
      '--secret-file',
      writeSecret('foreign'),
    ])
    expect(code).toBe(2)
    expect(stderr).toMatch(/^sandboxd: cannot listen on "203\.0\.113\.7:8080": \w+\nhint: .*\n$/)
  })

  test('fails on a unix socket that is in use, and leaves it alone', async () => {
    const path = join(folder, 'live.sock')
    const first = await startOnSocket(path)
    const { code, stderr } = await runFailing(['--insecure', '--listen', `unix:${path}`])
    expect(code).toBe(2)
    expect(stderr).toContain('another server is listening on it')
    expect((await fetch('http://localhost/healthz', { unix: path })).status).toBe(200)
    first.kill()
    await first.exited
  })

  test('fails on a path with a regular file, and leaves it alone', async () => {
    const path = join(folder, 'precious')
    writeFileSync(path, 'data')
    const { code, stderr } = await runFailing(['--insecure', '--listen', `unix:${path}`])
    expect(code).toBe(2)
    expect(stderr).toContain('not a socket')
    expect(existsSync(path)).toBe(true)
  })
})

describe('a unix socket', () => {
  test('is accessible to this user only, and replaces one left by a killed server', async () => {
    const path = join(folder, 'left.sock')
    const killed = await startOnSocket(path)
    killed.kill('SIGKILL')
    await killed.exited
    expect(existsSync(path)).toBe(true)
    const next = await startOnSocket(path)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    next.kill()
    await next.exited
    expect(existsSync(path)).toBe(false)
  })
})

test('a terminal works when sandboxd has no PATH', async () => {
  await using sandboxd = await startSandboxd({ env: { PATH: undefined } })
  await using client = runShell(sandboxd, 'tty; exit 3', { mode: 'pty' })
  expect(await client.exit).toMatchObject({ code: 3 })
  expect(client.text).toStartWith('/dev/pts/')
})

test('unauthenticated clients cannot exhaust the request limit of authenticated ones', async () => {
  await using sandboxd = await startSandboxd({ args: ['--requests-per-second', '20'] })
  const answers = await Promise.all(Array.from({ length: 100 }, () => fetch(`${sandboxd.url}/sessions`)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401, 429]))
  expect((await sandboxd.fetch('/sessions')).status).toBe(200)
})
