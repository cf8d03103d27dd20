import { expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { callTool, inTurns, openFakeAnthropic, say } from '@sandwire/testing/fake-anthropic'
import { findClaude } from './support/agents/real-agents.ts'
import { CONTAINERS_READY_MS, openContainers } from './support/container/containers.ts'
import { findEngineProblem } from './support/container/engine.ts'
import { buildAgentImage } from './support/container/images.ts'
import { startHost } from './support/control.ts'

const claude = findEngineProblem() === undefined ? await findClaude() : undefined
const reason = findEngineProblem() ?? claude?.problem
if (reason !== undefined) console.error(`Skipped, because ${reason}: agents in containers`)

const KEY = 'sk-ant-canary-of-containers'
const GATEWAY = 'http://gateway.sandwire.internal'
const WAIT = { timeoutMs: 60_000, intervalMs: 200 }

/** Fetches URLs from inside, with the Bun in the compiled sandboxd, and prints a line for each. */
function probe(urls: readonly string[], headers = '{}'): string {
  const code = `for (const url of ${JSON.stringify(urls)}) await fetch(url, { signal: AbortSignal.timeout(5000), headers: ${headers} })
    .then((r) => console.log("PROBE", url, r.status), () => console.log("PROBE", url, "refused"))`
  return `BUN_BE_BUN=1 sandboxd -e '${code}'`
}

interface RunView {
  readonly id: string
  readonly state: string
  readonly result: { readonly status: string; readonly filesChanged: readonly string[] } | null
  readonly usage: { readonly costUsd: number; readonly requests: number }
}

test.skipIf(reason !== undefined)(
  'an agent in a container works through the gateway and reaches nothing else (threats T2, T22)',
  async () => {
    await using containers = await openContainers()
    const image = await buildAgentImage(containers.engine, 'claude')
    using inner = Bun.serve({
      hostname: containers.engine.gateway,
      port: 0,
      fetch: () => new Response('inner'),
    })
    expect(await (await fetch(inner.url)).text()).toBe('inner')
    const elsewhere = [inner.url.href, 'http://example.test/', 'http://169.254.169.254/']
    const withToken = '{ authorization: "Bearer " + process.env.ANTHROPIC_AUTH_TOKEN }'
    const script = inTurns(
      callTool('Bash', { command: probe(elsewhere) }),
      callTool('Bash', {
        command: probe(
          [
            `${GATEWAY}/hosts/example.test/`,
            `${GATEWAY}/models/other/v1/messages`,
            `${GATEWAY}/api/sandboxes`,
          ],
          withToken,
        ),
      }),
      callTool('Bash', { command: 'env; cat /proc/*/environ | tr "\\0" "\\n"; true' }),
      // The test takes the token to another sandbox while the run works.
      callTool('Bash', {
        command:
          'umask 022; printf %s "$ANTHROPIC_AUTH_TOKEN" > /tmp/token; until [ -e /tmp/go ]; do sleep 0.1; done; rm /tmp/token',
      }),
      callTool('Write', { file_path: '/workspace/hello.txt', content: 'hello\n' }),
      say('All done'),
    )
    await using api = await openFakeAnthropic({ script, key: KEY })
    await using host = await startHost({
      env: { ...containers.env, SANDWIRE_IMAGE: image, ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: api.url },
    })
    const post = async (path: string, body: unknown): Promise<unknown> => {
      const headers = { ...host.headers, 'content-type': 'application/json' }
      return (await host.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
    }
    const exec = async (sandbox: string, command: string): Promise<string> => {
      const answer = await post(`/api/sandboxes/${sandbox}/exec`, { cmd: 'sh', args: ['-c', command] })
      return (answer as { readonly output: string }).output
    }
    await post('/api/sandboxes', { name: 'dev' })
    await post('/api/sandboxes', { name: 'other', network: { policy: 'open' } })
    const { id } = (await post('/api/runs', { sandbox: 'dev', task: 'Do it' })) as RunView
    const view = async (): Promise<RunView> => (await (await host.fetch(`/api/runs/${id}`)).json()) as RunView
    const token = await eventually(
      async () => {
        const { result } = await view()
        if (result !== null) throw new Error(JSON.stringify(result))
        return (await exec('dev', 'cat /tmp/token 2>/dev/null')) || false
      },
      { what: 'the token of the run', ...WAIT },
    )
    expect(token).toStartWith('sgw_')
    const asRun = `{ authorization: "Bearer ${token}" }`
    const models = `${GATEWAY}/models/anthropic/v1/messages`
    // The method is refused, after the token was accepted.
    expect(await exec('dev', probe([models], asRun))).toEndWith(`${models} 405\n`)
    expect(await exec('other', probe([models], asRun))).toEndWith(`${models} 401\n`)
    await exec('dev', 'touch /tmp/go')
    const run = await eventually(
      async () => {
        const seen = await view()
        return seen.state === 'ended' && seen
      },
      { what: 'the run to end', ...WAIT },
    )
    expect(run.result).toMatchObject({ status: 'completed', filesChanged: ['hello.txt'] })
    expect(run.usage.costUsd).toBeGreaterThan(0)
    const events = await (
      await host.fetch(`/api/runs/${id}/events`, { headers: { ...host.headers, accept: 'application/json' } })
    ).text()
    const seen = [...events.matchAll(/PROBE (\S+) (\w+)(?=\\n|")/g)].map(
      ([, url, outcome]) => `${url} ${outcome}`,
    )
    for (const url of elsewhere) expect(seen).toContain(`${url} refused`)
    expect(seen).toContain(`${GATEWAY}/hosts/example.test/ 403`)
    expect(seen).toContain(`${GATEWAY}/models/other/v1/messages 403`)
    expect(seen).toContain(`${GATEWAY}/api/sandboxes 404`)
    expect(events).toContain('ANTHROPIC_AUTH_TOKEN=[redacted]')
    for (const secret of [KEY, token])
      expect(events + JSON.stringify(run) + host.output()).not.toContain(secret)
  },
  CONTAINERS_READY_MS,
)
