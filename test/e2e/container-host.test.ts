import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually, rejectionOf } from '@sandwire/testing'
import { runShell } from './support/attached.ts'
import { type Containers, CONTAINERS_READY_MS, openContainers } from './support/container/containers.ts'
import { findEngineProblem } from './support/container/engine.ts'
import { type HostOptions, type RunningHost, startHost } from './support/control.ts'
import { listListening } from './support/listening.ts'
import type { WireServer } from './support/wire-server.ts'

const reason = findEngineProblem()
if (reason !== undefined) console.error(`Skipped, because ${reason}: sandboxes that are containers`)

/** Time within which control notices that a container ended. */
const TOLD_WITHIN = { timeoutMs: 5_000 }

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** Gives this machine a public address until it is disposed. */
function addOwnAddress(): Disposable & { readonly address: string } {
  const address = '93.184.215.99'
  const ip = (verb: string): void => void Bun.spawnSync(['ip', 'address', verb, `${address}/32`, 'dev', 'lo'])
  ip('add')
  return { address, [Symbol.dispose]: () => ip('del') }
}

/** A client for a host whose sandboxes are containers. */
class ContainerHost {
  readonly host: RunningHost
  readonly #containers: Containers

  private constructor(host: RunningHost, containers: Containers) {
    this.host = host
    this.#containers = containers
  }

  static async start(containers: Containers, options: HostOptions = {}): Promise<ContainerHost> {
    return new ContainerHost(await startHost({ ...options, env: containers.env }), containers)
  }

  async post(path: string, body: object = {}): Promise<Answer> {
    const init = {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    }
    const response = await this.host.fetch(path, init)
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  /** The state in the account's list. */
  async glance(name: string): Promise<Record<string, unknown> | undefined> {
    const answer = (await (await this.host.fetch('/api/sandboxes')).json()) as {
      sandboxes: Record<string, unknown>[]
    }
    return answer.sandboxes.find((each) => each['name'] === name)
  }

  /** Runs a shell script in a sandbox and returns its output. */
  async run(sandbox: string, script: string): Promise<string> {
    const { status, body } = await this.post(`/api/sandboxes/${sandbox}/exec`, {
      cmd: 'sh',
      args: ['-c', script],
    })
    if (status !== 200) throw new Error(JSON.stringify(body))
    return String(body['output'])
  }

  /** Fetches a URL from inside a sandbox, with the Bun that is part of the compiled sandboxd. */
  async get(sandbox: string, url: string): Promise<string> {
    const code = `fetch('${url}', { signal: AbortSignal.timeout(5000) }).then(
      async (r) => console.log(r.status, await r.text()), (e) => console.log('refused'))`
    return (await this.run(sandbox, `BUN_BE_BUN=1 sandboxd -e "${code}"`)).trim()
  }

  /** Names of the sandboxes' containers. */
  async list(): Promise<string[]> {
    const files = new Bun.Glob('*.sqlite').scanSync({ cwd: join(this.host.data, 'control/sandbox') })
    const ids = [...files].map((file) => file.replace('.sqlite', ''))
    const all = await this.#containers.engine.docker('ps', '--all', '--format', '{{.Names}}')
    return all.split('\n').filter((name) => ids.some((id) => name === `workerd-sandbox-${id}`))
  }

  server(sandbox: string): WireServer {
    const { host } = this
    return {
      port: host.port,
      headers: host.headers,
      sandbox,
      socketUrl: (path) => `ws://127.0.0.1:${host.port}${path}`,
      fetch: host.fetch,
      stop: host.stop,
    }
  }
}

describe.skipIf(reason !== undefined)('sandboxes that are containers', () => {
  let containers: Containers
  let server: ContainerHost

  beforeAll(async () => {
    containers = await openContainers()
    server = await ContainerHost.start(containers)
  }, CONTAINERS_READY_MS)

  afterAll(async () => {
    await server?.host.stop()
    await containers?.[Symbol.asyncDispose]()
  })

  const inspect = async (name: string, format: string): Promise<string> =>
    (await containers.engine.docker('inspect', name, '--format', format)).trim()

  /** Sends a raw request to port 80 of any address from inside a sandbox, and returns the answer. */
  const send = (sandbox: string, request: string): Promise<string> => {
    const encoded = Buffer.from(request).toString('base64')
    const script = `exec 3<>/dev/tcp/192.0.2.1/80; echo ${encoded} | base64 -d >&3; timeout 10 sed /Sandwire/q <&3`
    return server.run(sandbox, `bash -c "${script}"`)
  }

  test('serve files, search and git', async () => {
    await server.post('/api/sandboxes', { name: 'files' })
    const at = (tail: string): string => `/api/workspaces/files/${tail}`
    const bytes = new Uint8Array(3 * 1024 * 1024).map((_, index) => index % 251)
    const written = await server.host.fetch(at('file?path=deep/data.bin&parents=1'), {
      method: 'PUT',
      body: bytes,
    })
    expect(written.status).toBe(200)
    const read = await server.host.fetch(at('file?path=deep/data.bin'))
    expect(new Uint8Array(await read.arrayBuffer())).toEqual(bytes)
    expect(await server.run('files', 'stat -c %U deep/data.bin')).toBe('user\n')
    await server.run('files', 'git init -q . && echo needle > hay.txt')
    const found = await (await server.host.fetch(at('search?q=needle'))).text()
    expect(found).toContain('"path":"hay.txt"')
    const status = (await (await server.host.fetch(at('git/status'))).json()) as { files: { path: string }[] }
    expect(status.files.map(({ path }) => path)).toEqual(['deep/', 'hay.txt'])
    const refused = await server.host.fetch(at('file?path=../../../etc/passwd'))
    expect(refused.status).toBe(400)
    await server.host.fetch('/api/sandboxes/desk', { method: 'DELETE' })
  })

  /** Creates a sandbox and returns its container. */
  const create = async (name: string, options: object = {}): Promise<string> => {
    const before = new Set(await server.list())
    const { status, body } = await server.post('/api/sandboxes', { name, ...options })
    if (status !== 201) throw new Error(JSON.stringify(body))
    const made = (await server.list()).filter((each) => !before.has(each))
    expect(made).toHaveLength(1)
    return made[0] ?? ''
  }

  test('report their isolation, and have their files again after a stop', async () => {
    expect(server.host.output()).toContain('Isolation  container')
    await create('dev')
    expect(await server.glance('dev')).toMatchObject({
      state: 'running',
      isolation: 'container',
      ephemeral: false,
      sleepAfterSeconds: 600,
      limits: null,
    })
    await server.run('dev', 'echo kept > file')
    const stopped = await server.post('/api/sandboxes/dev/stop')
    expect(stopped).toMatchObject({ status: 200, body: { state: 'stopped', reason: null } })
    expect(await server.run('dev', 'cat file; echo later > file')).toBe('kept\n')
    // What was changed since the last version is discarded.
    expect(await server.post('/api/sandboxes/dev/stop?discard=1')).toMatchObject({ status: 200 })
    expect(await server.run('dev', 'cat file')).toBe('kept\n')
  })

  test('accept an environment of the largest allowed size', async () => {
    const env = Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`V${index}`, 'ä'.repeat(15_000)]))
    await create('rich', { env })
    expect(await server.run('rich', 'printf %s "$V0$V1$V2$V3$V4$V5$V6" | wc -c')).toBe('210000\n')
  })

  test('see only their own processes, users and files, and cannot reach the engine (threat T11)', async () => {
    const name = await create('inside')
    expect(await inspect(name, '{{.HostConfig.PidMode}} {{.HostConfig.Privileged}} {{json .Mounts}}')).toBe(
      'false []',
    )
    expect(
      await server.run('inside', 'cat /proc/1/comm; id -u; ls /var/run/docker.sock 2>&1 | tail -c 26'),
    ).toBe('sandboxd\n1000\nNo such file or directory\n')
  })

  test('start once for concurrent attaches', async () => {
    await server.post('/api/sandboxes', { name: 'shared', start: false })
    const since = String(Math.floor(Date.now() / 1_000))
    const before = new Set(await server.list())
    const attach = async (word: string): Promise<string> => {
      await using client = runShell(server.server('shared'), `echo ${word}`)
      expect(await client.exit).toMatchObject({ code: 0 })
      return client.text
    }
    expect(await Promise.all(['a', 'b', 'c'].map(attach))).toEqual(['a\n', 'b\n', 'c\n'])
    const [name = ''] = (await server.list()).filter((each) => !before.has(each))
    const until = String(Math.ceil(Date.now() / 1_000))
    const which = ['--filter', 'event=start', '--format', '{{.Actor.Attributes.name}}']
    const events = await containers.engine.docker('events', '--since', since, '--until', until, ...which)
    expect(events.split('\n').filter((each) => each === name)).toEqual([name])
  })

  test.each([
    ['by the engine', (name: string) => containers.engine.docker('kill', name)],
    // Docker restarts it, which must not count as running.
    [
      'by itself',
      async (name: string) => process.kill(Number(await inspect(name, '{{.State.Pid}}')), 'SIGKILL'),
    ],
  ])('that are killed %s are reported as stopped with their exit, and start again', async (how, kill) => {
    const sandbox = `killed-${how.replaceAll(' ', '-')}`
    const name = await create(sandbox)
    await server.run(sandbox, 'echo gone > file')
    await kill(name)
    await eventually(async () => (await server.glance(sandbox))?.['state'] === 'stopped', {
      what: 'the stop to be reported',
      ...TOLD_WITHIN,
    })
    expect(await server.glance(sandbox)).toMatchObject({ state: 'stopped', reason: 'exit_137' })
    expect(await server.run(sandbox, 'ls; echo fresh')).toBe('fresh\n')
  })

  test('start once after the engine restarted, for any number of requests', async () => {
    const name = await create('orphan')
    // A restarted engine leaves containers in this state.
    await containers.engine.docker('kill', `${name}-proxy`, name)
    await eventually(async () => (await server.glance('orphan'))?.['state'] === 'stopped', {
      what: 'the stop to be reported',
      ...TOLD_WITHIN,
    })
    const ask = (): Promise<string> => server.run('orphan', 'echo fresh').catch(String)
    await eventually(async () => (await ask()) === 'fresh\n', { what: 'a start' })
  })

  test('survive a kill of workerd without losing output', async () => {
    const name = await create('survivor')
    const startedAt = await inspect(name, '{{.State.StartedAt}}')
    const script = 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; sleep 0.01; done; read x; exit 9'
    await using client = runShell(server.server('survivor'), script)
    await client.waitFor('line 50\n')
    const { pid } = JSON.parse(readFileSync(join(server.host.data, 'workerd'), 'utf8')) as { pid: number }
    process.kill(pid, 'SIGKILL')
    await client.waitFor('line 400\n')
    await client.send('\n')
    expect(await client.exit).toMatchObject({ code: 9 })
    expect(client.reconnections).toBeGreaterThan(0)
    expect(client.text).toBe(Array.from({ length: 400 }, (_, index) => `line ${index + 1}\n`).join(''))
    expect(await inspect(name, '{{.State.StartedAt}}')).toBe(startedAt)
  })

  test('reach allowed hosts and nothing on this machine (threats T21, T22)', async () => {
    const { gateway } = containers.engine
    const innerServer = Bun.serve({ hostname: gateway, port: 0, fetch: () => new Response('inner') })
    try {
      const inner = `http://${gateway}:${innerServer.port}/`
      // Other processes on this machine do reach it.
      expect(await (await fetch(inner)).text()).toBe('inner')
      await create('none')
      await create('listed', {
        network: { policy: 'allowlist', allow: [`${gateway}:${innerServer.port}`, 'a.test'] },
      })
      await create('open', { network: { policy: 'open' } })
      expect(await server.get('none', inner)).toBe('refused')
      expect(await server.get('none', 'http://a.test/')).toBe('refused')
      // Even on the allow list: only public addresses are reachable.
      expect(await server.get('listed', inner)).toStartWith('403 Sandwire blocked')
      expect(await server.get('listed', 'http://b.test/')).toStartWith('403 Sandwire blocked b.test')
      expect(await server.get('listed', 'https://b.test/')).toStartWith('403 Sandwire blocked b.test')
      expect(await server.get('listed', 'http://a.test/')).toStartWith('502 Sandwire cannot reach a.test')
      expect(await server.get('open', inner)).toBe('refused')
      for (const url of ['http://169.254.169.254/', `http://${gateway}/`])
        expect(await server.get('open', url)).toStartWith('403 Sandwire blocked')
    } finally {
      await innerServer.stop(true)
    }
  })

  test('reach neither public addresses of this machine nor the network settings of other sandboxes (threats T21, T22)', async () => {
    using own = addOwnAddress()
    using inner = Bun.serve({ hostname: own.address, port: 80, fetch: () => new Response('inner') })
    expect(await (await fetch(inner.url)).text()).toBe('inner')
    const closed = await create('closed')
    await create('outward', { network: { policy: 'open' } })
    await create('outward-listed', { network: { policy: 'allowlist', allow: [own.address] } })
    for (const sandbox of ['outward', 'outward-listed'])
      expect(await server.get(sandbox, `http://${own.address}/`)).toStartWith(
        `403 Sandwire blocked ${own.address}:80: sandboxes may not connect to this address`,
      )
    const settings = (await containers.engine.docker('port', `${closed}-proxy`)).match(/:(\d+)\s*$/m)?.[1]
    const body = JSON.stringify({ internet: { enabled: true } })
    const put = `PUT /egress HTTP/1.1\r\nHost: ${own.address}:${settings}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
    expect(await send('outward', put)).toStartWith('HTTP/1.1 403 ')
    const direct = fetch(`http://${own.address}:${settings}/egress`, { method: 'PUT', body })
    expect((await rejectionOf(direct)).message).toContain('Unable to connect')
  })

  test('have egress listeners that no one else can use (threat T22)', async () => {
    const { gateway } = containers.engine
    const hex = Buffer.from(gateway.split('.').map(Number).toReversed()).toString('hex').toUpperCase()
    const { pid } = JSON.parse(readFileSync(join(server.host.data, 'workerd'), 'utf8')) as { pid: number }
    const listPorts = (): (string | undefined)[] =>
      listListening(pid).flatMap((each) => (each.startsWith(hex) ? [each.split(':')[1]] : []))
    const before = new Set(listPorts())
    await create('guarded', { network: { policy: 'allowlist', allow: ['a.test'] } })
    expect(await server.get('guarded', 'http://b.test/')).toStartWith('403 Sandwire blocked b.test')
    const ports = listPorts().filter((port) => !before.has(port))
    expect(ports.length).toBeGreaterThan(0)
    for (const port of ports) {
      const probe = `timeout 2 bash -c 'exec 3<>/dev/tcp/${gateway}/${port}' 2> /dev/null && echo open || echo closed`
      const local = Bun.spawnSync(['setpriv', '--reuid', '65534', '--clear-groups', 'bash', '-c', probe])
      expect(local.stdout.toString()).toBe('closed\n')
      const run = [
        'run',
        '--rm',
        '--network',
        'bridge',
        '--entrypoint',
        'bash',
        containers.image,
        '-c',
        probe,
      ]
      expect(await containers.engine.docker(...run)).toBe('closed\n')
    }
    expect(await server.get('guarded', 'http://b.test/')).toStartWith('403 Sandwire blocked b.test')
  })

  test('write a limited number of log lines about blocked requests (threat T22)', async () => {
    await create('noisy-listed', { network: { policy: 'allowlist', allow: ['a.test'] } })
    const request = 'GET / HTTP/1.1\\r\\nHost: b.test\\r\\n\\r\\n'
    const script = `exec 3<>/dev/tcp/192.0.2.1/80; for i in $(seq 200); do printf '${request}' >&3; done; timeout 10 grep -m 200 -c Sandwire <&3`
    expect(await server.run('noisy-listed', `bash -c "${script.replaceAll('$', '\\$')}"`)).toBe('200\n')
    const lines = readFileSync(join(server.host.data, 'host.log'), 'utf8').split('\n')
    const blocked = lines.filter((line) => line.includes('"egress_blocked"'))
    expect(blocked.length).toBeGreaterThan(0)
    expect(blocked.length).toBeLessThan(100)
  })

  test('send no mail with the policy open (threat T22)', async () => {
    await create('mailer', { network: { policy: 'open' } })
    for (const port of [25, 465, 587]) {
      const answer = await send(
        'mailer',
        `GET / HTTP/1.1\r\nHost: example.com:${port}\r\nConnection: close\r\n\r\n`,
      )
      expect(answer).toContain(`Sandwire blocked example.com:${port}: sandboxes may not send mail`)
    }
  })

  test('reach the credential gateway under every network policy, and no one without a grant', async () => {
    await create('offline', { network: { policy: 'none' } })
    const body = '{}'
    const request = `POST /models/anthropic/v1/messages HTTP/1.1\r\nHost: gateway.sandwire.internal\r\nx-sandwire-slot: 0\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
    expect(await send('offline', request)).toContain('the gateway token is not valid here')
  })

  test('get an error for an invalid address, without details of this machine (threat T21)', async () => {
    await create('garbled', { network: { policy: 'open' } })
    const ask = `exec 3<>/dev/tcp/192.0.2.1/80; printf 'GET / HTTP/1.1\\r\\nHost: a b\\r\\nConnection: close\\r\\n\\r\\n' >&3; timeout 10 cat <&3`
    const answer = await server.run('garbled', `bash -c "${ask}"`)
    expect(answer).toStartWith('HTTP/1.1 400 ')
    expect(answer).not.toContain('workerd')
  })

  test('have their network again after workerd was killed', async () => {
    await create('restored', { network: { policy: 'allowlist', allow: ['a.test'] } })
    const { pid } = JSON.parse(readFileSync(join(server.host.data, 'workerd'), 'utf8')) as { pid: number }
    process.kill(pid, 'SIGKILL')
    const get = (): Promise<string> => server.get('restored', 'http://b.test/').catch(() => 'not ready')
    await eventually(async () => (await get()).startsWith('403 Sandwire blocked b.test'), {
      what: 'a response from control',
    })
  })

  test('are removed when the host stops, or kept for the next host', async () => {
    const data = mkdtempSync(join(tmpdir(), 'sandwire-host-'))
    try {
      const first = await ContainerHost.start(containers, { data, args: ['--keep-sandboxes'] })
      await first.post('/api/sandboxes', { name: 'dev' })
      await first.run('dev', 'echo kept > file')
      const [name = ''] = await first.list()
      const startedAt = await inspect(name, '{{.State.StartedAt}}')
      await first.host.stop()

      const second = await ContainerHost.start(containers, { data })
      expect(second.host.output()).toContain('1 sandbox still running')
      expect(await second.run('dev', 'cat file')).toBe('kept\n')
      expect(await inspect(name, '{{.State.StartedAt}}')).toBe(startedAt)
      await second.host.stop()
      expect(await second.list()).toEqual([])
      const beside = await containers.engine.docker('ps', '--all', '--format', '{{.Names}}')
      expect(beside).not.toContain(name)
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  })

  test('are removed at once when destroyed', async () => {
    const name = await create('doomed')
    expect((await server.host.fetch('/api/sandboxes/doomed', { method: 'DELETE' })).status).toBe(204)
    await eventually(async () => !(await server.list()).includes(name), {
      what: 'the container to go',
    })
  })
})

test.skipIf(reason !== undefined)('a host without its images names them and how to build them', async () => {
  await using containers = await openContainers()
  const env = { ...containers.env, SANDWIRE_IMAGE: 'no-such:1', SANDWIRE_EGRESS_IMAGE: 'neither:1' }
  const failure = await startHost({ env }).then(
    async (host) => host.stop().then(() => 'it started'),
    (error: unknown) => String(error),
  )
  expect(failure).toContain('Image "no-such:1" not found: build it with npm run image')
  expect(failure).toContain('docker pull neither:1')
})

test.skipIf(reason !== undefined)('a host is not ready while its engine is down', async () => {
  await using containers = await openContainers()
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-engine-'))
  const socket = join(folder, 'docker.sock')
  const appear = (): void => symlinkSync(containers.engine.host.replace('unix://', ''), socket)
  appear()
  try {
    await using host = await startHost({ env: { ...containers.env, DOCKER_HOST: `unix://${socket}` } })
    const readiness = async (): Promise<unknown> => {
      const response = await host.fetch('/readyz')
      return { status: response.status, body: await response.json() }
    }
    const provider = { status: 'ok', code: null, isolation: 'container' }
    expect(await readiness()).toMatchObject({ status: 200, body: { dependencies: { provider } } })
    rmSync(socket)
    // The last result is reused for a moment.
    await eventually(async () => !(await host.fetch('/readyz')).ok, { what: 'it to be not ready' })
    expect(await readiness()).toMatchObject({
      status: 503,
      body: { status: 'unavailable', dependencies: { provider: { code: 'provider_unavailable' } } },
    })
    appear()
    await eventually(async () => (await host.fetch('/readyz')).ok, { what: 'it to be ready' })
  } finally {
    rmSync(folder, { recursive: true })
  }
})
