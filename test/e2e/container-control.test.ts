import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { attach } from '@sandwire/client'
import { OPCODE } from '@sandwire/testing'
import { PROTOCOL_VERSION } from '@sandwire/protocol'
import {
  type ControlOptions,
  type RunningControl,
  startControl,
  TOKEN,
} from '../../apps/control/test/support/control.ts'
import { upgrade } from '../../apps/control/test/support/handshake.ts'
import { FakeSandboxes } from '../../apps/control/test/support/fake-sandboxes.ts'
import { findWorkerd } from '../../apps/host/src/control/workerd.ts'
import { type Containers, CONTAINERS_READY_MS, openContainers } from './support/container/containers.ts'
import { findEngineProblem } from './support/container/engine.ts'

const reason = findEngineProblem()
if (reason !== undefined) console.error(`Skipped, because ${reason}: control with containers`)

/** workerd evicts an object after ten seconds without requests. */
const EVICTION_MS = 12_000

describe.skipIf(reason !== undefined)('control whose sandboxes are containers', () => {
  let containers: Containers

  beforeAll(async () => {
    containers = await openContainers()
  }, CONTAINERS_READY_MS)

  afterAll(async () => {
    await containers?.[Symbol.asyncDispose]()
  })

  const open = (options: Pick<ControlOptions, 'define' | 'alter'> = {}): Promise<RunningControl> =>
    startControl({
      runner: new FakeSandboxes(),
      containers: { ...containers, socketPath: containers.engine.host, workerd: findWorkerd() },
      ...options,
    })

  const run = async (control: RunningControl, sandbox: string, script: string): Promise<string> => {
    const response = await control.fetch(`/api/sandboxes/${sandbox}/exec`, {
      method: 'POST',
      json: { cmd: 'sh', args: ['-c', script] },
    })
    const answer = (await response.json()) as { output?: string }
    if (answer.output === undefined) throw new Error(JSON.stringify(answer))
    return answer.output.trim()
  }

  test('keeps streams and container when the object is evicted', async () => {
    // Cloudflare evicts an object that monitors its container; workerd does not.
    const alter = (script: string): string => {
      const unheld = script.replace('hold = (work) => ctx.waitUntil(work)', 'hold = () => undefined')
      const unwatched = unheld.replace('engine.monitor().then(', 'new Promise(() => undefined).then(')
      expect(new Set([script, unheld, unwatched]).size).toBe(3)
      return unwatched
    }
    await using control = await open({ alter })
    const objects = (): Promise<number> =>
      control.metric('sandwire_objects_constructed_total{class="sandbox"}')
    const handshake = await upgrade(control, '/attach?sandbox=dev&cmd=cat')
    if (handshake.kind !== 'open') throw new Error(`Expected a socket: ${handshake.kind}`)
    await using socket = handshake.socket
    expect(await objects()).toBe(1)
    await Bun.sleep(EVICTION_MS)
    await socket.sendFrame({ opcode: OPCODE.binary, payload: 'still here' })
    expect(new TextDecoder().decode((await socket.nextFrame()).payload)).toEndWith('still here')
    expect(await objects()).toBe(1)

    expect(await run(control, 'dev', 'ps -e -o comm= | grep -c "^cat$"')).toBe('1')
    expect(await objects()).toBe(2)
    expect(await (await control.fetch('/api/sandboxes/dev')).json()).toMatchObject({ state: 'running' })
    await control.fetch('/api/sandboxes/dev', { method: 'DELETE' })
  })

  test('works with the previous version of the image', async () => {
    await using control = await open({
      define: {
        SANDWIRE_BUILD_PROTOCOL: String(PROTOCOL_VERSION + 1),
        SANDWIRE_BUILD_COMPATIBLE_FROM: String(PROTOCOL_VERSION),
      },
    })
    let output = ''
    const handle = attach({
      url: `http://127.0.0.1:${control.port}/attach?sandbox=old`,
      request: { cmd: 'sh', args: ['-c', 'cat; exit 7'] },
      credentials: async () => ({
        headers: { authorization: `Bearer ${TOKEN}`, host: `localhost:${control.port}` },
      }),
      onOutput: (_, bytes) => void (output += new TextDecoder().decode(bytes)),
    })
    handle.write(new TextEncoder().encode('said\n')).catch(() => undefined)
    handle.eof()
    expect(await handle.exit).toMatchObject({ code: 7 })
    expect(output).toBe('said\n')
    await control.fetch('/api/sandboxes/old', { method: 'DELETE' })
  })

  test('forwards requests to allowed hosts and ports only, redirects included (threat T22)', async () => {
    await using control = await open()
    const hostname = containers.engine.gateway
    const other = Bun.serve({ hostname, port: 0, fetch: () => new Response('other') })
    const listed = Bun.serve({
      hostname,
      port: 0,
      fetch: (request) =>
        new URL(request.url).pathname === '/away'
          ? Response.redirect(`http://${hostname}:${other.port}/`)
          : new Response(`listed ${request.method}`),
    })
    try {
      const network = { policy: 'allowlist', allow: [`${hostname}:${listed.port}`] }
      const made = await control.fetch('/api/sandboxes', { method: 'POST', json: { name: 'net', network } })
      expect(made.status).toBe(201)
      const get = (url: string): Promise<string> =>
        run(
          control,
          'net',
          `BUN_BE_BUN=1 sandboxd -e "fetch('${url}').then(async (r) => console.log(await r.text()), () => console.log('refused'))"`,
        )
      expect(await get(`http://${hostname}:${listed.port}/`)).toBe('listed GET')
      expect(await get(`http://${hostname}:${other.port}/`)).toBe('refused')
      expect(await get(`http://${hostname}:${listed.port}/away`)).toBe('refused')
    } finally {
      await Promise.all([listed.stop(true), other.stop(true)])
      await control.fetch('/api/sandboxes/net', { method: 'DELETE' })
    }
  })
})
