import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, test } from 'bun:test'
import { isAlive, readDescendants, readProcessTable } from '@sandwire/testing'
import { readLines } from './support/lines.ts'

const ROOT = resolve(import.meta.dir, '../..')

test('npm start prints a line that works with only Node on PATH, and leaves nothing behind', async () => {
  const home = await mkdtemp(join(tmpdir(), 'cli-start-'))
  const env = {
    PATH: '/usr/bin:/bin',
    HOME: home,
    SHELL: '/bin/bash',
    INIT_CWD: home,
    npm_config_update_notifier: 'false',
  }
  const child = Bun.spawn([process.execPath, join(ROOT, 'scripts/start.ts'), '--port', '0'], {
    cwd: ROOT,
    env,
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const lines = readLines(child.stdout)
  let line = ''
  while (!line.includes('npx sbx-stdio')) line = (await lines.next()).value ?? 'npx sbx-stdio: not printed'
  const tokenFile = /--token-file (\S+)/.exec(line)?.[1] ?? ''
  expect(statSync(tokenFile).mode & 0o777).toBe(0o600)
  const below = readDescendants(child.pid)
  const secret = await Bun.file(tokenFile).text()
  const commands = await Promise.all(readProcessTable().map(({ pid }) => readCommand(pid)))
  expect(commands.filter((command) => command.includes(secret))).toEqual([])

  const run = Bun.spawnSync(['sh', '-c', `${line.trim()} -- pwd`], { cwd: ROOT, env })
  expect([run.stdout.toString(), run.exitCode]).toEqual([`${home}\n`, 0])

  child.kill('SIGINT')
  expect(await child.exited).toBe(0)
  expect(existsSync(tokenFile)).toBe(false)
  expect(below.filter(({ pid }) => isAlive(pid))).toEqual([])
  expect(await new Response(child.stderr).text()).toBe('')
  await rm(home, { recursive: true })
})

test.each(['sbx-stdio', 'sandboxd'])('npx %s works with only Node on PATH', (name) => {
  const env = { PATH: '/usr/bin:/bin', HOME: tmpdir(), npm_config_update_notifier: 'false' }
  for (const argv of [['npx', name], [join('node_modules/.bin', name)]]) {
    const run = Bun.spawnSync([...argv, '--version'], { cwd: ROOT, env })
    expect(run.stdout.toString()).toMatch(new RegExp(`^${name} \\d`))
  }
})

async function readCommand(pid: number): Promise<string> {
  // A process that ended meanwhile has no command line.
  return Bun.file(`/proc/${pid}/cmdline`)
    .text()
    .catch(() => '')
}
