import { existsSync, statSync } from 'node:fs'
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'bun:test'
import { isAlive, readDescendants } from '@sandwire/testing'
import { readLines } from './support/lines.ts'

const ROOT = resolve(import.meta.dir, '../..')

/** Folder of Node and npm, wherever they are installed, and those of the system. */
const NODE_PATH = [dirname(Bun.which('npm') ?? '/usr/bin/npm'), '/usr/bin', '/bin'].join(':')

test('npm start runs Sandwire in the current folder with only Node on PATH, and leaves no process behind', async () => {
  const home = await mkdtemp(join(tmpdir(), 'cli-start-'))
  const env = { PATH: NODE_PATH, HOME: home, SHELL: '/bin/bash', npm_config_update_notifier: 'false' }
  const argv = ['npm', '--silent', '--prefix', ROOT, 'start', '--', '--port', '0']
  const child = Bun.spawn(argv, { cwd: home, env, stdout: 'pipe', stderr: 'pipe', detached: true })
  const lines = readLines(child.stdout)
  let url: string | undefined
  while (url === undefined) {
    const { value } = await lines.next()
    if (value === undefined) throw new Error(await new Response(child.stderr).text())
    url = /sbx-stdio (http:\/\/localhost:\d+)\/attach/.exec(value)?.[1]
  }
  expect(statSync(join(home, '.sandwire')).mode & 0o777).toBe(0o700)
  expect(existsSync(join(home, '.config/sandwire/servers.json'))).toBe(true)
  expect((await fetch(`${url}/healthz`)).status).toBe(200)

  const below = readDescendants(child.pid)
  // As a terminal does it: to the foreground process group.
  process.kill(-child.pid, 'SIGINT')
  await child.exited
  expect(below.length).toBeGreaterThan(1)
  expect(below.filter(({ pid }) => isAlive(pid))).toEqual([])
  await rm(home, { recursive: true })
})

test('npx sbx-stdio, sandboxd and sandwire work with only Node on PATH', async () => {
  const env = { PATH: NODE_PATH, HOME: tmpdir(), npm_config_update_notifier: 'false' }
  const versionOf = async (...argv: string[]): Promise<string> => {
    const child = Bun.spawn([...argv, '--version'], { cwd: ROOT, env, stdout: 'pipe' })
    return await new Response(child.stdout).text()
  }
  for (const name of ['sbx-stdio', 'sandboxd', 'sandwire'])
    for (const version of await Promise.all([
      versionOf('npx', name),
      versionOf(join('node_modules/.bin', name)),
    ]))
      expect(version).toMatch(new RegExp(`^${name} \\d`))
})

test.each(['cli/bin/sbx-stdio', 'sandboxd/bin/sandboxd', 'host/bin/sandwire'])(
  'apps/%s works after a plain npm ci, before the first npm script',
  async (file) => {
    const [app = '', , name = ''] = file.split('/')
    const root = await mkdtemp(join(tmpdir(), 'cli-launcher-'))
    const at = (...parts: string[]): string => join(root, ...parts)
    await mkdir(at('apps', app, 'bin'), { recursive: true })
    await mkdir(at('node_modules', '.bin'), { recursive: true })
    await mkdir(at('node_modules', '@sandwire'))
    await mkdir(at('scripts'))
    await cp(join(ROOT, 'apps', file), at('apps', file))
    // As npm links workspaces and their commands.
    await symlink(`../../apps/${app}`, at('node_modules', '@sandwire', app))
    await symlink(`../@sandwire/${app}/bin/${name}`, at('node_modules', '.bin', name))
    await writeFile(at('scripts', 'bootstrap.mjs'), 'console.log("installed")')
    await writeFile(at('node_modules', '.bin', 'bun'), '#!/bin/sh\nprintf "%s\\n" "$@"\n', { mode: 0o755 })
    const child = Bun.spawn([at('node_modules', '.bin', name), 'a b'], {
      cwd: tmpdir(),
      env: { PATH: NODE_PATH },
      stdout: 'pipe',
    })
    expect(await new Response(child.stdout).text()).toBe(
      `installed\n${await realpath(at('apps', app))}/src/main.ts\na b\n`,
    )
    await rm(root, { recursive: true })
  },
)
