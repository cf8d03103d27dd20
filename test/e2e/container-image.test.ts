import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { type Engine, findEngineProblem, startEngine } from './support/container/engine.ts'
import { buildSandboxImage, buildSandboxImageOn } from './support/container/images.ts'
import { SandboxContainer } from './support/container/sandbox-container.ts'

const reason = findEngineProblem()
if (reason !== undefined) console.error(`Skipped, because ${reason}: the image of a sandbox`)

/** Building a base image takes a minute. */
const BUILD_MS = 400_000
const NONE = '0000000000000000'
/** CAP_KILL, CAP_SETGID, CAP_SETUID and CAP_SETPCAP, which are bits 5 to 8. */
const SWITCH_USERS = '00000000000001e0'

/** The fields of a line of `/proc/PID/status`. */
function field(status: string, name: string): string[] {
  const words = new RegExp(`^${name}:(.*)$`, 'm').exec(status)?.[1] ?? 'missing'
  return words.split(/\s+/).filter((word) => word !== '')
}

describe.skipIf(reason !== undefined)('the image of a sandbox', () => {
  let engine: Engine
  let image: string
  let sandbox: SandboxContainer

  beforeAll(async () => {
    engine = await startEngine()
    image = await buildSandboxImage(engine)
    const env = { GREETING: 'hello', PATH: '/usr/local/bin:/usr/bin:/bin:/home/user/bin' }
    sandbox = await SandboxContainer.start(engine, image, {
      SANDWIRE_ENV: JSON.stringify(env),
      STRAY: 'stray',
    })
  }, BUILD_MS)

  afterAll(async () => {
    await sandbox?.[Symbol.asyncDispose]()
    await engine?.[Symbol.asyncDispose]()
  })

  test('runs sandboxd as process 1, as its own user with only the capabilities to switch users (threat T11)', async () => {
    const status = await sandbox.inspect('cat', '/proc/1/status')
    expect(field(status, 'Name')).toEqual(['sandboxd'])
    expect(field(status, 'Uid')).toEqual(['900', '900', '900', '900'])
    expect(field(status, 'Gid')).toEqual(['900', '900', '900', '900'])
    expect(field(status, 'Groups')).toEqual(['900'])
    for (const set of ['CapEff', 'CapPrm', 'CapInh', 'CapAmb'])
      expect([set, ...field(status, set)]).toEqual([set, SWITCH_USERS])
  })

  test('runs processes as the user, who cannot gain privileges (threat T11)', async () => {
    const { stdout: status } = await sandbox.run('cat /proc/self/status')
    expect(field(status, 'Uid')).toEqual(['1000', '1000', '1000', '1000'])
    expect(field(status, 'Gid')).toEqual(['1000', '1000', '1000', '1000'])
    expect(field(status, 'Groups')).toEqual([])
    for (const set of ['CapEff', 'CapPrm', 'CapInh', 'CapAmb', 'CapBnd'])
      expect([set, ...field(status, set)]).toEqual([set, NONE])
    expect(field(status, 'NoNewPrivs')).toEqual(['1'])
    expect((await sandbox.run('umask')).stdout).toBe('0022\n')
    const { stdout } = await sandbox.run('su -c id </dev/null || passwd -d root || echo no')
    expect(stdout).toBe('no\n')
  })

  test("denies the user access to sandboxd's files, memory and process (threat T11)", async () => {
    const attach = `BUN_BE_BUN=1 /usr/local/bin/sandboxd -e "
      const { dlopen } = await import('bun:ffi')
      const libc = dlopen('libc.so.6', { ptrace: { args: ['i64', 'i64', 'i64', 'i64'], returns: 'i64' } })
      process.exit(Number(libc.symbols.ptrace(16, 1, 0, 0)) === 0 ? 0 : 1)"`
    const attempts = [
      'ls /run/sandwire',
      'cat /run/sandwire/public-key',
      'touch /run/sandwire/mine',
      'cat /proc/1/environ',
      'head -c 1 /proc/1/mem',
      'ls /proc/1/fd/',
      'ls /proc/1/root/',
      'kill -0 1',
      'kill -KILL 1',
      'echo >>/usr/local/bin/startup.sh',
      'echo >>/usr/local/bin/sandboxd',
      attach,
    ]
    for (const attempt of attempts) {
      const { stdout } = await sandbox.run(
        `echo tried; if { ${attempt}; } >&2; then echo succeeded; else echo failed; fi`,
      )
      expect([attempt, stdout]).toEqual([attempt, 'tried\nfailed\n'])
    }
  })

  test('serves the user no more than an unauthenticated client (threat T11)', async () => {
    const ask = (path: string) =>
      `exec 3<>/dev/tcp/127.0.0.1/8080; printf 'GET ${path} HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n' >&3; head -1 <&3`
    expect((await sandbox.run(ask('/healthz'))).stdout).toContain('200')
    expect((await sandbox.run(ask('/sessions'))).stdout).toContain('401')
  })

  test('has git, ripgrep and tmux, which work in the workspace', async () => {
    const { stdout, stderr, exit } =
      await sandbox.run(`set -e; pwd; echo needle >hay; git init -q .; git add hay
      git -c user.name=u -c user.email=u@example.test commit -qm first; git log --format=%s; rg needle .
      tmux new-session -d 'echo "$TERM" >seen'; while [ ! -s seen ]; do sleep 0.05; done; cat seen`)
    expect(stderr).toBe('')
    expect(stdout.split('\n')).toEqual([
      '/workspace',
      'first',
      expect.stringContaining('needle') as string,
      expect.stringMatching(/^(screen|tmux)/) as string,
      '',
    ])
    expect(exit).toMatchObject({ code: 0 })
  })

  test("gives processes the sandbox's environment and nothing of sandboxd's", async () => {
    const { stdout } = await sandbox.run('env')
    const names = stdout.split('\n').flatMap((line) => /^([A-Z_]+)=/.exec(line)?.[1] ?? [])
    expect(stdout).toContain('GREETING=hello\n')
    expect(stdout).toContain('PATH=/usr/local/bin:/usr/bin:/bin:/home/user/bin\n')
    expect(stdout).toContain('HOME=/home/user\n')
    expect(names.filter((name) => name.startsWith('SANDWIRE_'))).toEqual(['SANDWIRE_SESSION'])
    expect(names).not.toContain('STRAY')
    expect(await sandbox.inspect('ls', '/run/sandwire')).not.toContain('env.json')
  })

  test('reaps orphaned processes', async () => {
    const script = 'for i in 1 2 3 4 5; do (setsid sh -c "exec -a orphan sleep 0.1" &) ; done; echo done'
    expect((await sandbox.run(script)).stdout).toBe('done\n')
    await eventually(
      async () => {
        const states = await sandbox.inspect('ps', '-eo', 'stat=,comm=')
        return !states.split('\n').some((line) => line.startsWith('Z') || line.includes('sleep'))
      },
      { what: 'no orphan and no zombie' },
    )
  })

  test(
    'is built on a base that already has a user with that uid, and keeps its home',
    async () => {
      const change = `RUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home node && echo tool >/home/node/kept`
      await using built = await buildSandboxImageOn(engine, change)
      await using own = await SandboxContainer.start(engine, built.image)
      const { stdout, stderr } = await own.run(
        'id; echo ~ $HOME; touch mine; stat -c %U:%G mine ~; cat /home/node/kept',
      )
      expect({ stdout, stderr }).toEqual({
        stdout: [
          'uid=1000(user) gid=1000(user) groups=1000(user)',
          '/home/user /home/user',
          'user:user',
          'user:user',
          'tool',
          '',
        ].join('\n'),
        stderr: '',
      })
    },
    BUILD_MS,
  )

  test.each([
    [{}, 'startup: SANDWIRE_SANDBOX is not set: give the id of the sandbox\n'],
    [{ SANDWIRE_SANDBOX: 'x' }, "startup: SANDWIRE_PUBLIC_KEY is not set: give control's public key\n"],
  ])('prints what is missing in %p in one line and exits with 64', async (env, line) => {
    const options = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`])
    const { code, stdout, stderr } = await engine.tryDocker(['run', '--rm', ...options, image])
    // The Docker CLI first prints a warning when the engine cannot forward packets.
    const said = stderr.replace(/^WARNING: IPv4 forwarding is disabled.*\n/, '')
    expect({ code, stdout, said }).toEqual({ code: 64, stdout: '', said: line })
  })

  test('[X13] announces its deadline when stopped, and sends later output before the exit', async () => {
    await using own = await SandboxContainer.start(engine, image, { SANDWIRE_STOP_SECONDS: '9' })
    const client = await own.attach(
      `trap 'for i in $(seq 5000); do echo word $i; done; exit 7' HUP; echo up; while :; do sleep 0.05; done`,
    )
    await eventually(() => client.stdout.text === 'up\n', { what: 'the process' })
    const stopped = engine.docker('stop', own.name)
    expect(await client.closed).toEqual({ code: 1000, reason: '' })
    await stopped
    expect(client.messagesOf('error')).toEqual([
      {
        type: 'error',
        code: 'shutting_down',
        message: 'The sandbox is stopping: it ends within 9 s',
      },
    ])
    const words = client.stdout.text.split('\n').filter((line) => line.startsWith('word'))
    expect(words).toEqual(Array.from({ length: 5_000 }, (_, index) => `word ${index + 1}`))
    expect(client.exit).toMatchObject({ code: 7 })
    expect(client.outputAtExit).toBe(client.stdout.length + client.stderr.length)
    expect((await engine.docker('wait', own.name)).trim()).toBe('0')
  })
})
