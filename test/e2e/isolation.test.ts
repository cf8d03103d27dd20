import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import {
  createDataFolder,
  findMarked,
  findProcesses,
  findTraces,
  IsolatedSandbox,
  mintId,
  removeDataFolder,
  runFolderOf,
  findStarterProblem,
  type Starter,
} from './support/isolation/isolated.ts'

const MEBIBYTE = 1024 ** 2
/** A bomb must not delay its own stop for longer. */
const GONE_MS = 5_000

/** How long a resource bomb runs. */
const BOMB_MS = 1_000

const BOMBS = [
  { what: 'processes', bomb: 'bomb() { bomb | bomb & }; bomb; wait' },
  { what: 'memory', bomb: `python3 -c 'x = []\nwhile True: x.append(b"x" * 10000000)'` },
  { what: 'terminals', bomb: `python3 -c 'import os\nwhile True: os.openpty()'` },
  { what: 'sockets', bomb: `python3 -c 'import socket\ns = []\nwhile True: s.append(socket.socket())'` },
  { what: 'daemons', bomb: 'while :; do setsid -f sleep 1000 >/dev/null 2>&1 </dev/null; done' },
  { what: 'files', bomb: 'i=0; while :; do : > f$i; i=$((i+1)); done' },
  { what: 'bytes', bomb: 'yes > big; yes > big2; yes > big3' },
]

for (const starter of ['root', 'nobody'] satisfies Starter[]) {
  const problem = await findStarterProblem(starter)
  if (problem !== undefined) console.error(`isolation as ${starter}: skipped, ${problem}`)

  describe.skipIf(problem !== undefined)(`isolation started by ${starter}`, () => {
    let data = ''
    beforeEach(() => {
      data = createDataFolder(starter)
    })
    afterEach(() => removeDataFolder(data))

    test('runs processes as an ordinary user, with the usual tools', async () => {
      await using sandbox = await IsolatedSandbox.start(starter, data)
      expect((await sandbox.run('id -u; id -un; hostname; pwd; echo $HOME')).stdout).toBe(
        '1000\nuser\ndev\n/workspace\n/home/user\n',
      )
      const tools =
        'git init -q . && git status --short && python3 -c "import ssl; print(1)" && ls -d /etc/ssl/certs'
      expect(await sandbox.run(tools)).toMatchObject({ code: 0, stdout: '1\n/etc/ssl/certs\n' })
      expect((await sandbox.run('script -qec "stty size" /dev/null')).code).toBe(0)
    })

    test('keeps only workspace and home across a stop', async () => {
      const id = mintId()
      const first = await IsolatedSandbox.start(starter, data, { id })
      await first.run('echo kept > /workspace/a; echo kept > ~/b; echo gone > /tmp/c; chmod 0 /workspace ~')
      await first.send('stop')
      first.supervisor.kill('SIGKILL')
      await first.supervisor.exited
      await using second = await IsolatedSandbox.start(starter, data, { id })
      expect((await second.run('cat /workspace/a ~/b; ls /tmp')).stdout).toBe('kept\nkept\n')
    })

    test('follows no symbolic link that a sandbox left in its socket folder (threat T39)', async () => {
      const victim = join(data, 'victim')
      mkdirSync(victim)
      chmodSync(victim, 0o751)
      chownSync(victim, 12_345, 12_345)
      const id = mintId()
      const first = await IsolatedSandbox.start(starter, data, { id })
      // sandboxd can write to this folder; with a single user, so can every process.
      const names = ['egress', 'public-key', 'env.json']
      const links = names.map((name) => `rm -rf ${name}; ln -s ${victim} ${name}`)
      const plant = ['set -e', ...links, 'rm -f sandboxd.sock', 'mkdir -p sandboxd.sock/deep', 'ls -A']
      const left =
        starter === 'root'
          ? Bun.spawnSync(['sh', '-c', plant.join('\n')], { cwd: join(runFolderOf(starter, id), 'io') })
              .stdout
          : (await first.run(['cd /run/sandwire', ...plant].join('\n'))).stdout
      expect(left.toString()).toBe('egress\nenv.json\npublic-key\nsandboxd.sock\n')
      await first.send('stop')
      expect(await first.await('ended')).toMatchObject({ reason: expect.any(String) })
      first.supervisor.kill('SIGKILL')
      await first.supervisor.exited
      await using second = await IsolatedSandbox.start(starter, data, { id })
      expect((await second.run('echo alive')).stdout).toBe('alive\n')
      const { mode, uid, gid } = statSync(victim)
      expect([mode & 0o777, uid, gid]).toEqual([0o751, 12_345, 12_345])
    })

    test('denies processes inside access to the egress folder (threat T39)', async () => {
      await using sandbox = await IsolatedSandbox.start(starter, data)
      const folder = '/run/sandwire-egress'
      for (const attempt of [`touch ${folder}/x`, `mv ${folder} /run/other`, `rmdir ${folder}`])
        expect(await sandbox.run(attempt)).toMatchObject({ code: 1 })
      expect((await sandbox.run(`test -d ${folder}`)).code).toBe(0)
    })

    test('ends with the exit status of sandboxd', async () => {
      await using sandbox = await IsolatedSandbox.start(starter, data)
      await sandbox.send('stop')
      expect(await sandbox.await('ended')).toMatchObject({ reason: 'exit_0' })
    })

    test('kills processes that ignore signals (threat T40)', async () => {
      const mark = `7${String(Math.random()).slice(2, 10)}`
      const sandbox = await IsolatedSandbox.start(starter, data)
      await sandbox.run(
        `setsid -f bash -c 'trap "" TERM HUP INT; while :; do sleep ${mark}; done' </dev/null >/dev/null 2>&1`,
      )
      await sandbox.run(`(nohup bash -c '(sleep ${mark} &)' >/dev/null 2>&1 &)`)
      await eventually(() => findMarked(mark).length > 1, { what: 'the stubborn processes' })
      expect(await sandbox.send('stop')).toMatchObject({ tookMs: expect.any(Number) })
      expect(findMarked(mark)).toEqual([])
      await sandbox[Symbol.asyncDispose]()
      expect(findTraces(sandbox.id, data)).toEqual([])
    })

    test('ends with its supervisor, even a killed one, and starts again (threat T40)', async () => {
      const mark = `8${String(Math.random()).slice(2, 10)}`
      const sandbox = await IsolatedSandbox.start(starter, data)
      await sandbox.run(`echo kept > a; sync; setsid -f sleep ${mark} </dev/null >/dev/null 2>&1`)
      sandbox.supervisor.kill('SIGKILL')
      await sandbox.supervisor.exited
      const left = (): string[] => [...findMarked(mark), ...findProcesses(sandbox.id)]
      await eventually(() => left().length === 0, { what: 'every process to be gone' })
      await using again = await IsolatedSandbox.start(starter, data, { id: sandbox.id })
      expect((await again.run('cat a')).stdout).toBe('kept\n')
    })

    test.each(BOMBS)(
      'contains a bomb of $what: other sandboxes survive, and it stops at once (threat T32)',
      async ({ bomb }) => {
        const limits = { memoryBytes: 256 * MEBIBYTE, pids: 64, milliCpus: 500, diskBytes: 64 * MEBIBYTE }
        await using neighbor = await IsolatedSandbox.start(starter, data)
        const bombed = await IsolatedSandbox.start(starter, data, { limits })
        // The supervisor may fail with its sandbox; the machine and the other sandbox may not.
        const exploded = bombed.run(bomb).catch(() => undefined)
        await Promise.race([exploded, Bun.sleep(BOMB_MS)])
        expect((await neighbor.run('echo alive')).stdout).toBe('alive\n')
        expect(Number((await bombed.send('stop'))['tookMs'])).toBeLessThan(GONE_MS)
        await bombed[Symbol.asyncDispose]()
        expect(findProcesses(bombed.id)).toEqual([])
      },
    )

    test('reports out of memory when sandboxd was killed for it (threat T32)', async () => {
      await using sandbox = await IsolatedSandbox.start(starter, data, {
        limits: { memoryBytes: 128 * MEBIBYTE },
      })
      await sandbox.hoard(512 * MEBIBYTE).catch(() => undefined)
      expect(await sandbox.await('ended')).toMatchObject({ reason: 'oom' })
    })

    test('cannot use more disk than its limit (threat T32)', async () => {
      await using sandbox = await IsolatedSandbox.start(starter, data, {
        limits: { diskBytes: 32 * MEBIBYTE },
      })
      const fill = 'for i in 1 2 3 4 5; do head -c 12M /dev/zero > f$i || exit 7; done'
      if (starter === 'root') {
        expect(await sandbox.run(fill)).toMatchObject({
          code: 7,
          stderr: expect.stringContaining('No space left'),
        })
        expect((await sandbox.run('echo alive')).stdout).toBe('alive\n')
      } else {
        await sandbox.run(`${fill}; sleep 60`).catch(() => undefined)
        expect(await sandbox.await('ended')).toMatchObject({ reason: 'disk_full' })
      }
    })

    test.if(starter === 'root')('leaves sandboxd room when the user has filled the disk', async () => {
      await using sandbox = await IsolatedSandbox.start(starter, data, {
        limits: { diskBytes: 64 * MEBIBYTE },
      })
      expect((await sandbox.run('head -c 100M /dev/zero > fill')).code).not.toBe(0)
      expect((await sandbox.run('head -c 64K /dev/zero > more')).code).not.toBe(0)
      const state = '/var/lib/sandwire'
      expect(await sandbox.runAsDaemon(`head -c 1M /dev/zero > ${state}/journal; echo $?`)).toMatchObject({
        stdout: '0\n',
      })
      const attempts = `ls ${state} || touch ${state}/x || rm ${state}/journal || cat ${state}/journal || mv ${state} /tmp`
      await sandbox.runAsDaemon(`chmod 600 ${state}/journal`)
      expect((await sandbox.run(attempts)).code).not.toBe(0)
      await sandbox.runAsDaemon(`echo base > ${state}/base; chmod 644 ${state}/base`)
      expect((await sandbox.run(`cat ${state}/base`)).stdout).toBe('base\n')
      expect((await sandbox.runAsDaemon(`stat -c %s ${state}/journal`)).stdout).toBe(`${MEBIBYTE}\n`)
    })

    test.skipIf(starter === 'root').each([
      { where: 'a folder without permissions', fill: 'mkdir h; fill h; chmod 0 h' },
      {
        where: 'unlinked files',
        fill: 'mkdir h; exec 3>h/3 4>h/4 5>h/5; rm -r h; fill /dev/fd',
      },
      { where: 'its socket folder', fill: 'fill /run/sandwire' },
    ])(
      'cannot exceed its disk limit with $where, which the watchdog must find (threat T32)',
      async ({ fill }) => {
        await using sandbox = await IsolatedSandbox.start(starter, data, {
          limits: { diskBytes: 32 * MEBIBYTE },
        })
        const define = 'fill() { for i in 3 4 5; do head -c 12M /dev/zero > $1/$i; done; }'
        await sandbox.run(`${define}; ${fill}; sleep 60`).catch(() => undefined)
        expect(await sandbox.await('ended')).toMatchObject({ reason: 'disk_full' })
      },
    )

    test('leaves nothing behind after six starts and removals', async () => {
      for (let round = 0; round < 2; round += 1) {
        const batch = await Promise.all(Array.from({ length: 3 }, () => IsolatedSandbox.start(starter, data)))
        await Promise.all(
          batch.map((sandbox) => sandbox.run('echo x > x; setsid -f sleep 1000 >/dev/null 2>&1')),
        )
        await Promise.all(batch.map((sandbox) => sandbox[Symbol.asyncDispose]()))
        for (const { id } of batch) expect(findTraces(id, data)).toEqual([])
      }
    })
  })
}
