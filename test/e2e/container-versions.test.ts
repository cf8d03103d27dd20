import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { MAIN, runCli } from './cli-runner.ts'
import { type Containers, CONTAINERS_READY_MS, openContainers } from './support/container/containers.ts'
import { findEngineProblem } from './support/container/engine.ts'
import { type RunningHost, startHost } from './support/control.ts'

const reason = findEngineProblem()
if (reason !== undefined) console.error(`Skipped, because ${reason}: files of containers`)

const WAIT = { timeoutMs: 60_000 }

interface SandboxView {
  readonly id: string
  readonly state: string
  readonly reason: string | null
  readonly saved: {
    readonly state: string
    readonly savedMs: number | null
    readonly restored: { readonly savedMs: number; readonly reason: string } | null
  }
}

/** A client of a host that runs on a data folder which outlives it. */
class Client {
  readonly host: RunningHost

  constructor(host: RunningHost) {
    this.host = host
  }

  async run(sandbox: string, script: string): Promise<string> {
    const response = await this.host.fetch(`/api/sandboxes/${sandbox}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cmd: 'sh', args: ['-c', script] }),
    })
    const text = await response.text()
    if (response.status !== 200) throw new Error(text)
    return (JSON.parse(text) as { output: string }).output
  }

  async view(sandbox: string): Promise<SandboxView> {
    return (await (await this.host.fetch(`/api/sandboxes/${sandbox}`)).json()) as SandboxView
  }

  async untilSaved(sandbox: string): Promise<void> {
    await eventually(
      async () => {
        const { saved } = await this.view(sandbox)
        return saved.savedMs !== null && saved.state === 'idle'
      },
      { what: 'a version', ...WAIT },
    )
  }
}

describe.skipIf(reason !== undefined)('files of containers', () => {
  let containers: Containers
  let data: string

  beforeAll(async () => {
    containers = await openContainers()
    data = mkdtempSync(join(tmpdir(), 'sandwire-host-'))
  }, CONTAINERS_READY_MS)

  afterAll(async () => {
    await containers?.[Symbol.asyncDispose]()
    rmSync(data, { recursive: true, force: true })
  }, 60_000)

  let running: Client | undefined
  const up = async (env: Readonly<Record<string, string>> = {}): Promise<Client> => {
    running = new Client(await startHost({ data, env }))
    return running
  }
  afterEach(async () => running?.host.stop())

  test('are those of the same sandbox under another provider, in /workspace and the home folder', async () => {
    const wrapped = await up()
    await wrapped.host.fetch('/api/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"name":"dev"}',
    })
    await wrapped.run(
      'dev',
      'echo one > a; mkdir -m 750 d; ln -s ../a d/l; echo rc > ~/.rc; mkdir ~/.cache; echo c > ~/.cache/c',
    )
    expect(await wrapped.run('dev', 'pwd; echo ~')).toBe('/workspace\n/home/user\n')
    const { id } = await wrapped.view('dev')
    await wrapped.untilSaved('dev')
    await wrapped.host.stop()

    const contained = await up(containers.env)
    expect(
      await contained.run('dev', 'pwd; echo ~; cat a ~/.rc d/l; stat -c %a d; ls ~/.cache 2>/dev/null'),
    ).toBe('/workspace\n/home/user\none\nrc\none\n750\n')
    expect(await contained.view('dev')).toMatchObject({ id, ephemeral: false, sleepAfterSeconds: 600 })
    await contained.run('dev', 'echo two > a; echo rc2 > ~/.rc; rm -r d')
    // The stop of the host ends the container by SIGTERM: what was just written is saved.
    await contained.host.stop()

    // The disk of the first run still exists, with older files.
    const again = await up()
    expect(await again.run('dev', 'cat a ~/.rc; ls')).toBe('two\nrc2\na\n')
    expect((await again.view('dev')).saved.restored).toMatchObject({ reason: 'started' })
  }, 180_000)

  test('are saved when the platform ends the container, and restored when it is killed', async () => {
    const client = await up(containers.env)
    await client.run('dev', 'echo three > a')
    const { id } = await client.view('dev')
    const names = await containers.engine.docker('ps', '--format', '{{.Names}}')
    const name = names
      .split('\n')
      .find((each) => each.startsWith('workerd-sandbox-') && !each.endsWith('-proxy'))
    expect(name).toBeDefined()
    await containers.engine.docker('stop', '--time', '20', name ?? '')
    await eventually(async () => (await client.view('dev')).state === 'stopped', {
      what: 'the stop',
      ...WAIT,
    })
    expect(await client.run('dev', 'cat a')).toBe('three\n')
    expect((await client.view('dev')).saved.restored).toMatchObject({ reason: 'started' })

    await client.untilSaved('dev')
    await containers.engine.docker('kill', name ?? '')
    await eventually(async () => (await client.view('dev')).state === 'stopped', {
      what: 'the end',
      ...WAIT,
    })
    const argv = [process.execPath, MAIN, client.host.url, '--sandbox', 'dev', '--', 'cat', 'a'] as const
    const attached = await runCli(argv, { env: { SBX_TOKEN: client.host.token }, input: '' })
    expect(attached.stdout.toString()).toBe('three\n')
    expect(attached.stderr).toContain('dev was restored from the version of ')
    const { id: same, saved } = await client.view('dev')
    expect(same).toBe(id)
    expect(saved.restored).toMatchObject({ reason: 'lost' })
  }, 180_000)
})
