import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'bun:test'
import { limits } from '@sandwire/protocol'
import { connectPlain, eventually, isAlive, readDescendants } from '@sandwire/testing'
import { runShell } from './support/attached.ts'
import { startSandboxd } from './support/sandboxd.ts'
import { readFileLines } from './support/lines.ts'
import { mintHex, WireClient } from './support/wire-client.ts'

const MAIN = join(import.meta.dir, '../../apps/sandboxd/src/main.ts')

describe('SIGTERM', () => {
  test('[E1] [X13] notifies clients, ends every descendant process and exits with 0', async () => {
    const sandboxd = await startSandboxd()
    const file = join(sandboxd.workspace, 'pids')
    const script = `echo up; echo $$ >>${file}; setsid sh -c 'trap "" HUP TERM; echo $$ >>${file}; while :; do sleep 1; done' & exec sleep 600`
    const query = new URLSearchParams([
      ['createId', mintHex()],
      ['cmd', 'sh'],
      ['arg', '-c'],
      ['arg', script],
      ['mode', 'pty'],
    ])
    const wire = new WireClient(sandboxd, query.toString())
    await wire.hello({ identity: mintHex() })
    await wire.next('welcome')
    const plain = await connectPlain(sandboxd.socketUrl('/attach?cmd=cat'), { headers: sandboxd.headers })
    const pids = await eventually(
      async () => {
        const lines = await readFileLines(file)
        return lines.length === 2 ? lines.map(Number) : undefined
      },
      { what: 'two processes' },
    )
    const descendants = readDescendants(sandboxd.pid).map(({ pid }) => pid)
    expect(descendants.length).toBeGreaterThanOrEqual(2)
    sandboxd.kill('SIGTERM')
    expect(await wire.closed).toEqual({ code: 1012, reason: 'shutting_down' })
    expect(wire.of('error')).toMatchObject([
      { code: 'shutting_down', message: 'The sandbox is stopping: it ends within 4 s', fatal: false },
      { code: 'shutting_down', fatal: true },
    ])
    // The exit was sent before the close.
    expect(wire.of('exit')).toMatchObject([{ code: null, signal: 'SIGHUP' }])
    expect((await plain.closed).code).toBe(1000)
    expect(await sandboxd.exited).toEqual({ code: 0, signal: null })
    expect([...pids, ...descendants].filter(isAlive)).toEqual([])
    await sandboxd.stop()
  })

  test.each(['pipe', 'pty'] as const)(
    '[X13] delivers every byte that a process writes while it ends, before its exit (%s)',
    async (mode) => {
      const sandboxd = await startSandboxd({ args: ['--stop-seconds', '20'] })
      const words = 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo word $i; done; echo last'
      const client = runShell(
        sandboxd,
        // It gets another signal half a second after the hangup, perhaps before it is done.
        `trap '' TERM; trap '${words}; exit 7' HUP; echo up; while :; do sleep 0.05; done`,
        { mode },
      )
      await client.waitFor('up')
      sandboxd.kill('SIGTERM')
      expect(await client.handle.exit).toMatchObject({ code: 7, signal: null, truncated: false })
      // The shell may also report that its sleep was hung up.
      const lines = client.stdout.text.split(/\r?\n/).filter((line) => /^word|^last/.test(line))
      const expected = Array.from({ length: 20_000 }, (_, index) => `word ${index + 1}`)
      expect(lines).toEqual([...expected, 'last'])
      expect(client.warnings).toEqual(['shutting_down'])
      expect(await sandboxd.exited).toEqual({ code: 0, signal: null })
      await sandboxd.stop()
    },
  )

  test('[X13] gives a process the announced time to finish, and starts no other meanwhile', async () => {
    const sandboxd = await startSandboxd({ args: ['--stop-seconds', '20'] })
    const client = runShell(
      sandboxd,
      `trap 'while [ ! -e go ]; do sleep 0.05; done; echo done; exit 0' HUP; echo up; while :; do sleep 0.05; done`,
    )
    await client.waitFor('up')
    sandboxd.kill('SIGTERM')
    await eventually(() => client.warnings.length > 0, { what: 'the warning' })
    const late = new WireClient(sandboxd, `createId=${mintHex()}&cmd=true`)
    expect(await late.closed).toEqual({ code: 1012, reason: 'shutting_down' })
    await Bun.write(join(sandboxd.workspace, 'go'), '')
    expect(await client.handle.exit).toMatchObject({ code: 0 })
    expect(client.stdout.text).toBe('up\ndone\n')
    expect(await sandboxd.exited).toEqual({ code: 0, signal: null })
    await sandboxd.stop()
  })

  test('[X13] makes a client that does not read reconnect, and then reports that the session is gone', async () => {
    const sandboxd = await startSandboxd({ args: ['--stop-seconds', '1'] })
    // More than the window: with all output and the exit received, a client needs no connection any more.
    const bytes = limits.START_WINDOW_BYTES + 1
    const script = `head -c ${bytes} /dev/zero; echo >written; exec sleep 600`
    const client = runShell(sandboxd, script, { retryForMs: 1_500, isFrozen: true })
    await client.isAttached()
    const isWritten = () => Bun.file(join(sandboxd.workspace, 'written')).exists()
    await eventually(isWritten, { what: 'the output to be written' })
    await sandboxd.stop()
    await eventually(() => client.reconnections > 0, { what: 'the client to reconnect' })
    const status = await eventually(
      () => {
        const now = client.handle.status.get()
        return now.kind === 'failed' ? now : undefined
      },
      { what: 'the client to give up' },
    )
    expect(['link_lost', 'shutting_down']).toContain(status.error.code)
  })

  test('sent twice stops it once', async () => {
    const sandboxd = await startSandboxd()
    const client = runShell(sandboxd, 'cat')
    await client.isAttached()
    sandboxd.kill('SIGTERM')
    sandboxd.kill('SIGTERM')
    sandboxd.kill('SIGINT')
    expect(await sandboxd.exited).toEqual({ code: 0, signal: null })
    client.handle.detach()
    await sandboxd.stop()
  })
})

describe('SIGKILL', () => {
  test('of sandboxd is never reported as an exit of the process', async () => {
    const sandboxd = await startSandboxd()
    const client = runShell(sandboxd, 'echo up; exec sleep 600', { retryForMs: 800 })
    await client.waitFor('up')
    const children = readDescendants(sandboxd.pid).map(({ pid }) => pid)
    sandboxd.kill('SIGKILL')
    const status = await eventually(
      () => {
        const now = client.handle.status.get()
        return now.kind === 'failed' || now.kind === 'exited' ? now : undefined
      },
      { what: 'the client to give up' },
    )
    expect(status.kind).toBe('failed')
    for (const pid of children) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // Its pipes closed, so it ended.
      }
    }
    await sandboxd.stop()
  })
})

describe('a unix socket', () => {
  test('accepts requests with the secret, and is removed at exit', async () => {
    const sandboxd = await startSandboxd()
    const path = join(sandboxd.workspace, 's.sock')
    const secretFile = join(sandboxd.workspace, 'secret')
    const secret = mintHex()
    const start = async () => {
      await Bun.write(secretFile, secret)
      const child = Bun.spawn(
        [
          process.execPath,
          MAIN,
          '--listen',
          `unix:${path}`,
          '--secret-file',
          secretFile,
          '--workspace',
          sandboxd.workspace,
        ],
        {
          stdout: 'pipe',
          stderr: 'ignore',
        },
      )
      const { value } = await child.stdout.getReader().read()
      expect(JSON.parse(new TextDecoder().decode(value))).toMatchObject({
        type: 'ready',
        url: `unix:${path}`,
      })
      return child
    }
    const get = (headers: Record<string, string>) =>
      fetch('http://localhost/sessions', { unix: path, headers } as RequestInit)
    const child = await start()
    expect((await get({ authorization: `Bearer ${secret}` })).status).toBe(200)
    expect((await get({})).status).toBe(401)
    expect((await get({ authorization: `Bearer ${secret}`, host: 'evil.example' })).status).toBe(421)
    child.kill('SIGKILL')
    await child.exited
    // A socket left by an earlier run is replaced.
    const second = await start()
    expect((await get({ authorization: `Bearer ${secret}` })).status).toBe(200)
    second.kill('SIGTERM')
    expect(await second.exited).toBe(0)
    expect(await stat(path).catch(() => undefined)).toBeUndefined()
    await sandboxd.stop()
  })
})

describe('an invalid start', () => {
  test.each([
    [['--listen', 'nonsense'], '--listen'],
    [[], 'secret'],
    [['--secret-file', '/no/such/file'], 'secret'],
    [['--insecure', '--workspace', '/no/such/place'], 'workspace'],
    [['--insecure', '--listen', 'unix:/etc/passwd'], 'not a socket'],
    [['--insecure', '--no-such-flag'], 'no-such-flag'],
  ])('%j prints two lines and exits with code 2', async (args, text) => {
    const child = Bun.spawn([process.execPath, MAIN, ...args], { stdout: 'pipe', stderr: 'pipe' })
    const [code, stdout, stderr] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(text)
    expect(stderr).toContain('hint: ')
  })

  test('with a short secret is refused', async () => {
    const file = join(process.env['TMPDIR'] ?? '/tmp', `short-${mintHex()}`)
    await Bun.write(file, 'short')
    const child = Bun.spawn([process.execPath, MAIN, '--secret-file', file], {
      stdout: 'ignore',
      stderr: 'pipe',
    })
    expect(await child.exited).toBe(2)
    expect(await new Response(child.stderr).text()).toContain('too short')
  })
})
