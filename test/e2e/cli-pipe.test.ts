import { createHash } from 'node:crypto'
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, isAlive, patternAt, readProcessTable } from '@sandwire/testing'
import { finish, openTarget, runCli, runShell, startCli, type Target } from './cli-runner.ts'

const TEN_MB = 10 * 1024 * 1024
const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')

describe('sbx-stdio without a terminal', () => {
  let target: Target
  let folder = ''

  beforeAll(async () => {
    target = await openTarget()
    folder = await mkdtemp(join(tmpdir(), 'cli-pipe-'))
  })

  afterAll(async () => {
    await target[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  const sh = (script: string, ...options: string[]) => [
    ...target.argv(),
    ...options,
    '--',
    'bash',
    '-c',
    script,
  ]

  const listSessions = async () => {
    const { sessions } = (await (await target.sandboxd.fetch('/sessions')).json()) as {
      sessions: { id: string; state: string; attachments: number }[]
    }
    return sessions
  }

  test('a session does not attach to itself', async () => {
    const { code, stderr } = await runCli(sh(`exec ${target.argv().join(' ')} --session "$SANDWIRE_SESSION"`))
    expect(code).toBe(2)
    expect(stderr).toContain('Cannot attach a session to itself')
  })

  describe('exit code', () => {
    test.each([
      ['success', 'exit 0', 0],
      ['any status', 'exit 77', 77],
      ['255 of the remote', 'exit 255', 255],
      ['a signal', 'kill -TERM $$', 143],
      ['a signal that cannot be caught', 'kill -KILL $$', 137],
    ])('is that of the remote process: %s', async (_name, script, code) => {
      expect(await runCli(sh(script))).toMatchObject({ code, stderr: '' })
    })

    test('is 127 for a command that does not exist, with its name and a hint', async () => {
      const run = await runCli([...target.argv(), '--', 'no-such-command'])
      expect(run).toMatchObject({ code: 127 })
      expect(run.stderr).toMatch(/^sbx-stdio: .*"no-such-command".*\nhint: .*\n$/)
    })

    test('is 126 for a file that is not executable', async () => {
      expect(await runCli([...target.argv(), '--', '/etc/passwd'])).toMatchObject({
        code: 126,
        stderr: expect.stringMatching(/^sbx-stdio: .*\/etc\/passwd.*\nhint: .*\n$/),
      })
    })

    test.each([
      [['--bogus'], 'Unknown option "--bogus"'],
      [['--', 'ls', '--cmd'], ''],
    ])('is 2 for wrong usage only: %j', async (options, message) => {
      const run = await runCli([...target.argv(), ...options])
      if (message === '') expect(run.stderr).not.toContain('sbx-stdio:')
      else
        expect(run).toMatchObject({ code: 2, stderr: `sbx-stdio: ${message}\nhint: npx sbx-stdio --help\n` })
    })

    test('is 2 for too many variables, before connecting', async () => {
      // Nobody listens there.
      const argv = [...target.argv().slice(0, 2), 'http://127.0.0.1:1', '--token', 't']
      const many = Array.from({ length: 257 }, (_, at) => ['--env', `V${at}=`]).flat()
      const run = await runCli([...argv, ...many, '--', 'true'])
      expect(run.stderr).toMatch(
        /^sbx-stdio: Too many variables: 257, at most 256 are allowed\nhint: [^\n]+\n$/,
      )
      expect(run.code).toBe(2)
      const long = await runCli([...argv, '--env', `V=${'x'.repeat(40_000)}`, '--', 'true'])
      expect(long.stderr).toStartWith('sbx-stdio: Variable "V" is too long: 40000 characters')
      expect(long.code).toBe(2)
    })

    test('is not 0 for a request that the server refuses, without a stack', async () => {
      const run = await runCli([...target.argv(), '--cwd', '../../..', '--', 'true'])
      expect(run.code).not.toBe(0)
      expect(run.stderr).toMatch(/^sbx-stdio: .*\nhint: .*\n$/)
    })

    test('is 255 when the server is unreachable', async () => {
      const [bun, main = ''] = target.argv()
      const run = await runCli([bun, main, 'http://127.0.0.1:1', '--retry-for', '0', '--', 'true'])
      expect(run).toMatchObject({ code: 255 })
      expect(run.stderr).toMatch(/^sbx-stdio: .*connection refused\nhint: .*http:\/\/127\.0\.0\.1:1\n$/)
    })

    test('is 255 for a session that does not exist', async () => {
      expect(await runCli([...target.argv(), '--session', 'nope'])).toMatchObject({
        code: 255,
        stderr: expect.stringMatching(/^sbx-stdio: .*\nhint: .*\n$/),
      })
    })

    test('is 255, not 0, when the server dies for good', async () => {
      await using doomed = await openTarget()
      const child = startCli([...doomed.argv(), '--retry-for', '1', '--', 'bash', '-c', 'echo up; sleep 100'])
      const [read, rest] = child.stdout.tee()
      Object.defineProperty(child, 'stdout', { value: rest })
      const done = finish(child)
      await read.getReader().read()
      doomed.sandboxd.kill('SIGKILL')
      const run = await done
      expect(run).toMatchObject({ code: 255 })
      expect(run.stdout.toString()).toBe('up\n')
      expect(run.stderr).toMatch(/^sbx-stdio: [^\n]*\nhint: npx sbx-stdio [^\n]*--session [^\n]*\n$/)
    })
  })

  describe('credentials', () => {
    const bare = (): string[] => target.argv().slice(0, 3)

    test('SBX_TOKEN is used', async () => {
      const run = await runCli([...bare(), '--', 'echo', 'in'], {
        env: { SBX_TOKEN: target.sandboxd.secret },
      })
      expect(run).toMatchObject({ code: 0, stderr: '' })
      expect(run.stdout.toString()).toBe('in\n')
    })

    test('SBX_TOKEN does not reach the remote', async () => {
      const run = await runCli(sh('env'), { env: { SBX_TOKEN: 'not-for-you' } })
      expect(run.stdout.toString()).not.toContain('SBX_TOKEN')
    })

    test('none, or a wrong one, is 255 with a hint', async () => {
      const none = await runCli([...bare(), '--', 'true'])
      expect(none).toMatchObject({
        code: 255,
        stderr: expect.stringMatching(/^sbx-stdio: .*\nhint: give a token .*\n$/),
      })
      const wrong = await runCli([...bare(), '--', 'true'], { env: { SBX_TOKEN: 'wrong-wrong-wrong' } })
      expect(wrong.code).toBe(255)
      expect(wrong.stderr).toMatch(/^sbx-stdio: .*\nhint: the server does not accept this token.*\n$/)
      expect(wrong.stderr).not.toContain('wrong-wrong')
    })

    test('a missing token file is reported by name', async () => {
      const run = await runCli([...bare(), '--token-file', '/no/such/file', '--', 'true'])
      expect(run).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('"/no/such/file": no such file\nhint: '),
      })
    })

    test('a token in the address is refused and not repeated', async () => {
      const [bun = '', main = '', url = ''] = bare()
      for (const address of [`${url}/attach?token=hunter2`, url.replace('//', '//me:hunter2@')]) {
        const run = await runCli([bun, main, address])
        expect(run.code).toBe(2)
        expect(run.stderr).toContain('--token-file')
        expect(run.stderr).not.toContain('hunter2')
      }
    })

    test('--token works, and is gone from the process table while the CLI runs', async () => {
      const { secret } = target.sandboxd
      const child = startCli([...bare(), '--token', secret, '--', 'bash', '-c', 'echo up; read line'])
      const reader = child.stdout.getReader()
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('up\n')
      const command = readCommand(child.pid)
      expect(command).toContain('--token')
      expect(command).not.toContain(secret)
      await child.stdin.end()
      await child.exited
    })

    test('the secret is in no command line and no environment of any process of the sandbox', async () => {
      const child = startCli(sh('echo up; read line'))
      const done = finish(child)
      await eventually(
        () => readProcessTable().some(({ pid }) => readCommand(pid).includes('echo up; read line')),
        {
          what: 'the remote process',
        },
      )
      for (const { pid } of readProcessTable()) {
        expect(readCommand(pid)).not.toContain(target.sandboxd.secret)
        if (readCommand(pid).startsWith('bash'))
          expect(readEnvironment(pid)).not.toContain(target.sandboxd.secret)
      }
      await child.stdin.end()
      await done
    })
  })

  describe('output', () => {
    test('keeps stdout and stderr apart', async () => {
      const run = await runCli(sh('echo out; echo err >&2; echo out2'))
      expect(run.stdout.toString()).toBe('out\nout2\n')
      expect(run.stderr).toBe('err\n')
    })

    test('carries every byte value both ways', async () => {
      const all = Uint8Array.from({ length: 256 * 4 }, (_, index) => index & 255)
      const run = await runCli([...target.argv(), '--', 'cat'], { input: all })
      expect(run.stdout.equals(all)).toBe(true)
    })

    test('carries 10 MB both ways', async () => {
      const bytes = patternAt(7, 0, TEN_MB)
      const run = await runCli([...target.argv(), '--', 'cat'], { input: bytes })
      expect(run).toMatchObject({ code: 0, stderr: '' })
      expect(sha256(run.stdout)).toBe(sha256(bytes))
    })

    test('waits for a slow reader, and loses nothing at exit', async () => {
      const script = 'cli -- seq 1 400000 | (sleep 0.3; sha256sum); echo ${PIPESTATUS[0]}'
      const lines = `${Array.from({ length: 400_000 }, (_, index) => index + 1).join('\n')}\n`
      const run = await runShell(target.argv(), script)
      expect(run.stdout.toString()).toBe(`${sha256(lines)}  -\n0\n`)
    })

    test('limits an endless writer while stdout is not read', async () => {
      const child = startCli([...target.argv(), '--', 'bash', '-c', 'exec cat /dev/zero'])
      const reader = child.stdout.getReader()
      await reader.read()
      const before = await metric(target, 'output_bytes')
      await Bun.sleep(700)
      const grown = (await metric(target, 'output_bytes')) - before
      // Socket buffers, window, log: bounded, however long it takes.
      expect(grown).toBeLessThan(64 * 1024 * 1024)
      await reader.cancel()
      child.kill('SIGKILL')
      await child.exited
    })

    test('ends the remote process with SIGPIPE when the reader is gone', async () => {
      const run = await runShell(
        target.argv(),
        'cli -- bash -c "echo \\$\\$ >&2; exec yes" | head -2; echo ${PIPESTATUS[0]}',
      )
      expect(run.stdout.toString()).toBe('y\ny\n141\n')
      const pid = Number(run.stderr.trim())
      expect(pid).toBeGreaterThan(0)
      await eventually(() => !isAlive(pid), { what: 'the remote process to end' })
    })

    test('continues when only stderr is closed', async () => {
      const run = await runShell(
        target.argv(),
        'cli -- bash -c "echo a >&2; echo b; echo c >&2; echo d" 2>&-',
      )
      expect(run.stdout.toString()).toBe('b\nd\n')
    })

    test('does not change the flags of a shared pipe', async () => {
      const run = await runShell(target.argv(), '{ cli -- echo hi; grep flags /proc/self/fdinfo/1; } | cat')
      expect(run.stdout.toString()).toMatch(/^hi\nflags:\t0*1\n$/)
    })

    test('reports a full disk in one line, and exits', async () => {
      const run = await runShell(target.argv(), 'cli -- yes > /dev/full; echo $?')
      expect(run.stdout.toString()).toBe('255\n')
      expect(run.stderr).toMatch(/^sbx-stdio: Cannot write to stdout: ENOSPC\nhint: .*\n$/)
    })
  })

  describe('input', () => {
    test('ends where the pipe ends', async () => {
      const run = await runShell(
        target.argv(),
        'printf "b\\na\\n" | cli -- sort; cli -- wc -c </dev/null; cli -- cat <<< here',
      )
      expect(run.stdout.toString()).toBe('a\nb\n0\nhere\n')
    })

    test('may be a file, closed, or a folder', async () => {
      await writeFile(join(folder, 'input'), 'from a file')
      const run = await runShell(
        target.argv(),
        `cli -- cat < ${join(folder, 'input')}; cli -- wc -c <&-; cli -- wc -c < ${folder}`,
      )
      expect(run.stdout.toString()).toBe('from a file0\n0\n')
    })

    test('waits for a remote process that does not read', async () => {
      const child = startCli(sh('sleep 0.3; sha256sum'))
      const done = finish(child)
      const bytes = patternAt(9, 0, TEN_MB)
      void child.stdin.write(bytes)
      await child.stdin.end()
      expect((await done).stdout.toString()).toBe(`${sha256(bytes)}  -\n`)
    })

    test('that is not read does not delay the exit', async () => {
      const run = await runShell(
        target.argv(),
        'cat /dev/zero | cli -- head -c 3 | od -An -c; echo ${PIPESTATUS[1]}',
      )
      expect(run.stdout.toString()).toBe('  \\0  \\0  \\0\n0\n')
    })

    test('sends the environment and the working directory', async () => {
      const argv = [
        ...target.argv(),
        '--env',
        'A=x y',
        '--env',
        'COPIED',
        '--env',
        'UNSET',
        '--',
        'bash',
        '-c',
      ]
      const run = await runCli([...argv, 'echo "$A|$COPIED|${UNSET-none}|$PWD"'], {
        env: { COPIED: 'c', UNSET: undefined },
      })
      expect(run.stdout.toString()).toBe(`x y|c|none|${target.sandboxd.workspace}\n`)
    })

    test('--env carries a variable named __proto__', async () => {
      const run = await runCli([...target.argv(), '--env', '__proto__=x', '--', 'env'])
      expect(run.stdout.toString().split('\n')).toContain('__proto__=x')
    })

    test('refuses arguments that are not UTF-8', async () => {
      const marker = join(target.sandboxd.workspace, '\ufffd')
      await writeFile(marker, '')
      const run = await runShell(target.argv(), "cli -- rm $'\\xff'; echo $?; cli -- echo $'\\xef\\xbf\\xbd'")
      expect(run.stdout.toString()).toBe('2\n\ufffd\n')
      expect(run.stderr).toMatch(
        /^sbx-stdio: An argument is not valid UTF-8, and would be changed on the way\nhint: .*\n$/,
      )
      expect(await Bun.file(marker).exists()).toBe(true)
      await rm(marker)
      const word = await runShell(
        target.argv(),
        `${target.argv().slice(0, 2).join(' ')} ls $'box:\\xff'; echo $?`,
      )
      expect([word.stdout.toString(), word.stderr.split('\n')[0]]).toEqual([
        '2\n',
        'sbx-stdio: An argument is not valid UTF-8, and would be changed on the way',
      ])
    })

    test('accepts --sandbox and --cmd with --arg', async () => {
      const run = await runCli([
        ...target.argv(),
        '--sandbox',
        'dev',
        '--cmd',
        'printf',
        '--arg',
        '[%s]',
        '--arg',
        '-lc',
        '--arg',
        'a b',
      ])
      expect(run.stdout.toString()).toBe('[-lc][a b]')
    })
  })

  describe('signals', () => {
    test.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)('%s is forwarded', async (signal) => {
      const child = startCli(
        sh(`trap 'echo got; exit 9' ${signal.slice(3)}; echo up; while :; do sleep 0.01; done`),
      )
      const reader = child.stdout.getReader()
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('up\n')
      child.kill(signal)
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('got\n')
      await child.exited
      expect(child.exitCode).toBe(9)
    })

    test('the exit code of a signaled process is 128 + n', async () => {
      const child = startCli(sh('echo up; exec sleep 100'))
      await child.stdout.getReader().read()
      child.kill('SIGINT')
      await child.exited
      expect(child.exitCode).toBe(130)
    })

    test('three in a row detach from a process that ignores them, and print how to reattach', async () => {
      const child = startCli(sh('trap "" INT; echo up; while :; do sleep 0.01; done'))
      await child.stdout.getReader().read()
      await killUntilExit(child, 'SIGINT')
      expect(child.exitCode).toBe(130)
      expect(await new Response(child.stderr).text()).toMatch(
        /^sbx-stdio: detached; .*\nnpx sbx-stdio .* --session .*\n$/,
      )
    })

    test('three in a row detach even when stdout is not read', async () => {
      const name = join(folder, 'never-read')
      Bun.spawnSync(['mkfifo', name])
      const full = openSync(name, constants.O_RDWR)
      const argv = sh('trap "" TERM; exec yes')
      const written = () => metric(target, 'output_bytes')
      const start = await written()
      const child = Bun.spawn(argv, { stdin: 'ignore', stdout: full, stderr: 'ignore' })
      let before = -1
      await eventually(
        async () => {
          const now = await written()
          const isStill = now > start + 65_536 && now === before
          before = now
          return isStill
        },
        { what: 'the pipe to be full' },
      )
      await killUntilExit(child, 'SIGTERM')
      closeSync(full)
      expect(child.exitCode).toBe(143)
    })

    test('the second one detaches while the connection is down', async () => {
      const child = startCli([...target.argv('proxy'), '--', 'bash', '-c', 'echo up; sleep 100'])
      await child.stdout.getReader().read()
      target.proxy.setFaults({ newConnections: 'refuse' })
      target.proxy.disconnectAll('reset')
      await Bun.sleep(100)
      child.kill('SIGINT')
      await Bun.sleep(50)
      expect(child.exitCode).toBeNull()
      child.kill('SIGINT')
      await child.exited
      target.proxy.setFaults({ newConnections: 'accept' })
      expect(child.exitCode).toBe(130)
    })

    test('the first one exits while connecting', async () => {
      target.proxy.setFaults({ newConnections: 'hold' })
      const child = startCli([...target.argv('proxy'), '--', 'true'])
      await eventually(() => target.proxy.connections.length > 0, { what: 'a connection' })
      child.kill('SIGINT')
      await child.exited
      target.proxy.setFaults({ newConnections: 'accept' })
      expect(child.exitCode).toBe(130)
    })
  })

  describe('disconnects', () => {
    test('do not change the output of a flood', async () => {
      const child = startCli([...target.argv('proxy'), '--', 'seq', '1', '2000000'])
      const done = finish(child)
      for (const bytes of [100_000, 700_000, 1, 3_000_000])
        target.proxy.disconnectAfterBytes('toClient', bytes)
      await child.stdin.end()
      const run = await done
      expect(run).toMatchObject({ code: 0, stderr: '' })
      const expected = createHash('sha256')
      for (let index = 1; index <= 2_000_000; index += 1000)
        expected.update(`${Array.from({ length: 1000 }, (_, step) => index + step).join('\n')}\n`)
      expect(sha256(run.stdout)).toBe(expected.digest('hex'))
      expect(target.proxy.stats.disconnects).toBeGreaterThanOrEqual(4)
    })

    test('do not change the input of the process', async () => {
      const bytes = patternAt(11, 0, TEN_MB)
      for (const count of [50_000, 900_000, 2_000_000]) target.proxy.disconnectAfterBytes('toTarget', count)
      const run = await runCli([...target.argv('proxy'), '--', 'sha256sum'], { input: bytes })
      expect(run).toMatchObject({ code: 0, stderr: '' })
      expect(run.stdout.toString()).toBe(`${sha256(bytes)}  -\n`)
    })
  })

  test('joins a session as a viewer without reading its own input', async () => {
    const driver = startCli(sh('echo up; read line; echo "got $line"'))
    await driver.stdout.getReader().read()
    const session = (await listSessions()).findLast(({ state }) => state === 'running')?.id ?? ''
    const attachmentsOf = async (id: string) =>
      (await listSessions()).find((each) => each.id === id)?.attachments
    const viewer = startCli([...target.argv(), '--session', session, '--role', 'viewer'])
    void viewer.stdin.write('from the viewer\n')
    await viewer.stdin.end()
    const seen = finish(viewer)
    await eventually(async () => (await attachmentsOf(session)) === 2, { what: 'the viewer to attach' })
    void driver.stdin.write('from the driver\n')
    await driver.stdin.end()
    const run = await seen
    expect(run).toMatchObject({ code: 0 })
    expect(run.stdout.toString()).toEndWith('got from the driver\n')
    await driver.exited
  })

  test('shows help and version on stdout', async () => {
    const [bun, main = ''] = target.argv()
    expect(await runCli([bun, main, '--version'])).toMatchObject({ code: 0, stderr: '' })
    const help = await runCli([bun, main, '--help'])
    expect(help.stdout.toString()).toContain('Usage: sbx-stdio URL')
    const source = await readFile(
      join(import.meta.dir, '../../apps/cli/src/options/attach-options.ts'),
      'utf8',
    )
    for (const [, name] of source.matchAll(/^ {2}'?([a-z-]+)'?: '(?:once|repeatable)'/gm))
      expect(help.stdout.toString()).toContain(`--${name}`)
  })
})

function readCommand(pid: number): string {
  return readProc(pid, 'cmdline')
}

function readEnvironment(pid: number): string {
  return readProc(pid, 'environ')
}

function readProc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1')
  } catch {
    // The process ended meanwhile, or does not let itself be read.
    return ''
  }
}

/**
 * Sends a signal three times, and after a while again: the kernel merges signals that a busy process has not handled yet, and one
 * more while it detaches ends it without a message.
 */
async function killUntilExit(child: Bun.Subprocess, signal: NodeJS.Signals): Promise<void> {
  for (let count = 0; count < 50 && child.exitCode === null; count++) {
    child.kill(signal)
    await Promise.race([child.exited, Bun.sleep(count % 3 === 2 ? 2_000 : 100)])
  }
  await child.exited
}

async function metric({ sandboxd }: Target, part: string): Promise<number> {
  const text = await (await sandboxd.fetch('/metrics')).text()
  const line = text.split('\n').find((each) => !each.startsWith('#') && each.includes(part))
  return Number(line?.split(' ').at(-1) ?? Number.NaN)
}
