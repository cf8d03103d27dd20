import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'
import { openTerminal } from './support/terminal.ts'

const ROOT = resolve(import.meta.dir, '../..')

/** No Bun, no Node, nothing of the workspace. */
const BARE = ['env', '-i', 'PATH=/usr/bin:/bin', 'SHELL=/bin/bash', 'TERM=xterm-256color']

describe('the compiled executables', () => {
  let folder = ''
  let sandboxd: RunningSandboxd
  let argv: [string, ...string[]] = ['']

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cli-build-'))
    const build = Bun.spawnSync([process.execPath, join(ROOT, 'scripts/build.ts'), folder])
    expect(build.exitCode).toBe(0)
    sandboxd = await startSandboxd({ program: [...BARE, join(folder, 'sandboxd')] })
    await writeFile(join(folder, 'token'), sandboxd.secret, { mode: 0o600 })
    argv = [
      'env',
      ...BARE.slice(1),
      join(folder, 'sbx-stdio'),
      sandboxd.url,
      '--token-file',
      join(folder, 'token'),
    ]
  })

  afterAll(async () => {
    await sandboxd.stop()
    await rm(folder, { recursive: true })
  })

  test('run without Bun: version, pipes, exit code', () => {
    const version = Bun.spawnSync([...BARE, join(folder, 'sbx-stdio'), '--version'])
    expect(version.stdout.toString()).toMatch(/^sbx-stdio \d+\.\d+\.\d+\n$/)
    const run = Bun.spawnSync([...argv, '--', 'sh', '-c', 'cat; echo err >&2; exit 5'], {
      stdin: new TextEncoder().encode('in'),
    })
    expect([run.stdout.toString(), run.stderr.toString(), run.exitCode]).toEqual(['in', 'err\n', 5])
  })

  test('render a screen after reattaching: the worker is included', async () => {
    await using first = openTerminal({
      argv: [...argv, '--env', 'PS1=P$ ', '--', 'bash', '--norc', '--noprofile', '-i'],
    })
    await first.waitFor('P$ ')
    first.send('echo remember-$((40+2))\r')
    await first.waitFor('remember-42')
    await first.waitFor('P$ ')
    first.send('\x1d')
    expect((await first.exit).code).toBe(0)
    const session = /--session (\S+)/.exec(first.rawOutput())?.[1] ?? ''
    await using second = openTerminal({ argv: [...argv, '--session', session] })
    await second.waitFor('remember-42')
    second.send('exit 6\r')
    expect(await second.exit).toEqual({ code: 6, signal: null })
  })
})
