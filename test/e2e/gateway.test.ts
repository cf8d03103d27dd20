import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type FakeAnthropic, openFakeAnthropic, say } from '@sandwire/testing/fake-anthropic'
import { type RunningHost, startHost } from './support/control.ts'

const KEY = 'sk-ant-canary-e2e-1111111111'

describe('the credential gateway on one machine', () => {
  let host: RunningHost
  let fake: FakeAnthropic

  beforeAll(async () => {
    fake = await openFakeAnthropic({ script: () => say('Hello'), key: KEY })
    host = await startHost({ env: { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: fake.url } })
  })
  afterAll(async () => {
    await host.stop()
    await fake[Symbol.asyncDispose]()
  })

  const run = async (sandbox: string, ...argv: string[]): Promise<string> => {
    const [cmd, ...args] = argv
    const response = await host.fetch(`/api/sandboxes/${sandbox}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cmd, args }),
    })
    return response.text()
  }

  test('is reachable in a sandbox without network, and opens to nobody without a grant', async () => {
    await host.fetch('/api/sandboxes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'closed', network: { policy: 'none', allow: [] } }),
    })
    const answer = await run(
      'closed',
      'curl',
      '-s',
      '-m',
      '10',
      '-w',
      ' %{http_code}',
      'http://127.0.0.1:3129/models/anthropic/v1/messages',
      '-d',
      '{}',
    )
    expect(answer).toContain('the gateway token is not valid here')
    expect(fake.requests.length).toBe(0)
  })
})
