import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { runInProcess } from '../../apps/cli/test/in-process.ts'
import { type RunningHost, startHost } from './support/control.ts'

/** A cold start on a busy machine. */
const TIMEOUT_MS = 90_000

let host: RunningHost

beforeAll(async () => {
  host = await startHost()
}, TIMEOUT_MS)

afterAll(async () => {
  await host.stop()
}, TIMEOUT_MS)

function cli(...argv: string[]) {
  return runInProcess([...argv, '--url', host.url], {
    env: { SBX_TOKEN: host.token, npm_command: undefined },
  })
}

/** Runs a shell command in the sandbox; returns its output. */
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

interface VersionView {
  readonly version: number
  readonly name: string | null
  readonly kind: string
}

async function versions(sandbox: string): Promise<readonly VersionView[]> {
  const response = await host.fetch(`/api/sandboxes/${sandbox}/checkpoints`)
  return ((await response.json()) as { versions: VersionView[] }).versions
}

test(
  'changed files are saved by themselves, a checkpoint is restored, and the restore can be undone',
  async () => {
    expect((await cli('create', 'dev')).code).toBe(0)
    await shell('dev', 'echo one > a && mkdir -p d && echo x > d/y && ln -s a l && echo rc > ~/.rc')
    await eventually(async () => (await versions('dev')).length > 0, { what: 'a version', timeoutMs: 30_000 })
    expect((await cli('checkpoint', 'dev', 'first')).stderr).toContain('saved as dev@first')
    await shell('dev', 'echo two > a && rm -r d && date > new && rm ~/.rc')

    expect((await cli('restore', 'dev@first')).code).toBe(0)
    expect(await shell('dev', 'cat a d/y ~/.rc && readlink l && ls')).toBe('one\nx\nrc\na\na\nd\nl\n')

    const [restored, undo] = await versions('dev')
    expect([restored, undo]).toMatchObject([
      { kind: 'automatic', name: null },
      { kind: 'checkpoint', name: null },
    ])
    expect((await cli('restore', `dev@${undo?.version}`)).code).toBe(0)
    expect(await shell('dev', 'cat a && ls')).toBe('two\na\nl\nnew\n')

    const listed = (await cli('checkpoints', 'dev')).stdout.toString()
    expect(listed).toContain('first')
    expect((await cli('checkpoint', 'dev', 'first')).stderr).toContain('has this name')
    expect((await cli('restore', 'dev@none')).stderr).toContain('No version')
    expect((await cli('checkpoints', 'dev', '--delete', 'first')).code).toBe(0)
    expect((await cli('checkpoints', 'dev')).stdout.toString()).not.toContain('first')
  },
  TIMEOUT_MS,
)

test(
  'a stop saves the last changes, a lost disk is restored, and destroying a sandbox deletes its versions',
  async () => {
    expect((await cli('create', 'short')).code).toBe(0)
    await shell('short', 'echo last > file')
    expect((await cli('stop', 'short')).code).toBe(0)
    expect((await versions('short')).length).toBeGreaterThan(0)

    // The disk of the sandbox is lost.
    const { id } = (await (await host.fetch('/api/sandboxes/short')).json()) as { id: string }
    const isolation = join(host.data, 'isolation')
    for (const kind of ['images', 'files'].filter((name) => existsSync(join(isolation, name))))
      for (const name of readdirSync(join(isolation, kind)).filter((each) => each.startsWith(id)))
        rmSync(join(isolation, kind, name), { recursive: true })
    const refused = await cli('start', 'short')
    expect(refused).toMatchObject({ code: 255, stderr: expect.stringContaining('checkpoints short') })
    const [newest] = await versions('short')
    expect((await cli('restore', `short@${newest?.version}`)).stderr).toContain('has the files of version')
    expect(await shell('short', 'cat file')).toBe('last\n')

    const segments = join(host.data, 'store/segments')
    expect(readdirSync(segments)).toContain(id)
    expect((await cli('rm', 'short', '--force')).code).toBe(0)
    expect(readdirSync(segments)).not.toContain(id)
  },
  TIMEOUT_MS,
)
