import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { MAIN, runCli } from './cli-runner.ts'
import { runInProcess } from '../../apps/cli/test/in-process.ts'
import { type RunningHost, startHost } from './support/control.ts'

/** A cold start on a busy machine. */
const TIMEOUT_MS = 180_000

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
async function shell(sandbox: string, script: string, on = host): Promise<string> {
  const response = await on.fetch(`/api/sandboxes/${sandbox}/exec`, {
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

interface SandboxView {
  readonly id: string
  readonly state: string
  readonly saved: {
    readonly state: string
    readonly savedMs: number
    readonly restored: { readonly savedMs: number; readonly reason: string } | null
  }
}

interface EventReader extends AsyncDisposable {
  readonly names: () => readonly string[]
  readonly text: () => string
}

/** Reads the events of a sandbox until it is disposed. */
async function listen(sandbox: string): Promise<EventReader> {
  const controller = new AbortController()
  const response = await host.fetch(`/api/sandboxes/${sandbox}/events`, { signal: controller.signal })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  let text = ''
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true })
  })().catch(() => undefined)
  return {
    text: () => text,
    names: () => [...text.matchAll(/^event: (.+)$/gm)].map(([, name = '']) => name),
    [Symbol.asyncDispose]: async () => {
      controller.abort()
      await reading
    },
  }
}

/** Removes the files of a stopped sandbox. */
function loseDisk(id: string, on = host): void {
  const isolation = join(on.data, 'isolation')
  for (const kind of ['images', 'files'].filter((name) => existsSync(join(isolation, name))))
    for (const name of readdirSync(join(isolation, kind)).filter((each) => each.startsWith(id)))
      rmSync(join(isolation, kind, name), { recursive: true })
}

async function versions(sandbox: string): Promise<readonly VersionView[]> {
  const response = await host.fetch(`/api/sandboxes/${sandbox}/checkpoints`)
  return ((await response.json()) as { versions: VersionView[] }).versions
}

test(
  'changed files are saved by themselves, a checkpoint is restored, and the restore can be undone',
  async () => {
    expect((await cli('create', 'dev')).code).toBe(0)
    await using events = await listen('dev')
    await shell('dev', 'echo one > a && mkdir -p d && echo x > d/y && ln -s a l && echo rc > ~/.rc')
    await eventually(async () => (await versions('dev')).length > 0, { what: 'a version' })
    expect((await cli('checkpoint', 'dev', 'first')).stderr).toContain('saved as dev@first')
    await shell('dev', 'echo two > a && rm -r d && date > new && rm ~/.rc')

    const { code, stderr } = await cli('restore', 'dev@first')
    expect(code).toBe(0)
    expect(await shell('dev', 'cat a d/y ~/.rc && readlink l && ls')).toBe('one\nx\nrc\na\na\nd\nl\n')

    expect(events.names()).toEqual(
      expect.arrayContaining(['sync_state', 'restore_started', 'restoring', 'restored']) as string[],
    )
    expect(events.text()).toContain('"state":"flushing"')
    expect(events.text()).toMatch(
      /event: restored\ndata: {"version":\d+,"savedMs":\d+,.*"reason":"requested"}/,
    )

    const [restored, undo] = await versions('dev')
    expect([restored, undo]).toMatchObject([
      { kind: 'automatic', name: null },
      { kind: 'checkpoint', name: null },
    ])
    expect(stderr).toContain(`to undo this: sbx-stdio restore dev@${undo?.version}`)
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
  'a stop saves the last changes, a lost disk is restored at the next start, and destroying a sandbox deletes its versions',
  async () => {
    expect((await cli('create', 'short')).code).toBe(0)
    await shell('short', 'echo last > file')
    expect((await cli('stop', 'short')).code).toBe(0)
    expect((await versions('short')).length).toBeGreaterThan(0)

    const { id } = (await (await host.fetch('/api/sandboxes/short')).json()) as SandboxView
    loseDisk(id)
    expect(await shell('short', 'cat file')).toBe('last\n')
    const { saved } = (await (await host.fetch('/api/sandboxes/short')).json()) as SandboxView
    // Nothing was lost: the stop had saved everything.
    expect(saved.restored).toMatchObject({ reason: 'started' })

    const segments = join(host.data, 'store/segments')
    expect(readdirSync(segments)).toContain(id)
    expect((await cli('rm', 'short', '--force')).code).toBe(0)
    expect(readdirSync(segments)).not.toContain(id)
  },
  TIMEOUT_MS,
)

test(
  'a client that attaches to a sandbox whose machine was lost is told which version it has',
  async () => {
    expect((await cli('create', 'lost')).code).toBe(0)
    await shell('lost', 'echo kept > file')
    const view = async () => (await (await host.fetch('/api/sandboxes/lost')).json()) as SandboxView
    expect((await cli('checkpoint', 'lost')).code).toBe(0)
    const { id, saved } = await view()
    // Without a last save, as when the machine is lost.
    expect((await host.fetch('/api/sandboxes/lost/stop?discard=1', { method: 'POST' })).status).toBe(200)
    loseDisk(id)
    const argv = [process.execPath, MAIN, host.url, '--sandbox', 'lost', '--', 'cat', 'file'] as const
    const attached = await runCli(argv, { env: { SBX_TOKEN: host.token }, input: '' })
    expect(attached.stdout.toString()).toBe('kept\n')
    const time = new Date(saved.savedMs).toISOString().replace('T', ' ').slice(0, 19)
    expect(attached.stderr).toContain(
      `lost was restored from the version of ${time} UTC; later changes are lost`,
    )
    expect((await view()).saved.restored).toMatchObject({ reason: 'lost', savedMs: saved.savedMs })
  },
  TIMEOUT_MS,
)

test(
  'a host that shuts down has the files of its sandboxes saved',
  async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-host-'))
    try {
      await using before = await startHost({ data })
      const view = async (on: RunningHost) =>
        (await (await on.fetch('/api/sandboxes/dev')).json()) as SandboxView
      await before.fetch('/api/sandboxes', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"name":"dev"}',
      })
      await shell('dev', 'echo one > file', before)
      // From now on control observes changes.
      await eventually(async () => (await view(before)).saved.savedMs !== null, {
        what: 'a version',
      })
      const { id } = await view(before)
      await shell('dev', 'echo two > file', before)
      await before.stop()
      loseDisk(id, before)
      await using after = await startHost({ data })
      expect(await shell('dev', 'cat file', after)).toBe('two\n')
      expect((await view(after)).saved.restored).toMatchObject({ reason: 'started' })
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  },
  TIMEOUT_MS,
)
