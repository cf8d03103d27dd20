import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { SLOT_HEADER } from '@sandwire/internal-api'
import { eventually } from '@sandwire/testing'
import { type FakeAnthropic, openFakeAnthropic, say, type Script } from '@sandwire/testing/fake-anthropic'
import { type FakeOpenAi, openFakeOpenAi } from '@sandwire/testing/fake-openai'
import type { GatewayGrant, GatewayUsage } from '../src/credentials/grant.ts'
import { type RunningControl, startControl } from './support/control.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

const KEY = 'sk-ant-canary-0000000000000000'
const OPENAI_KEY = 'sk-openai-canary-000000000000'
const HELLO: Script = () => say('Hello', { usage: { input_tokens: 1000, output_tokens: 100 } })

let places: FakeSandboxes
let control: RunningControl
let fake: FakeAnthropic
let openAi: FakeOpenAi
let sandbox: string
let otherSandbox: string
let runs = 0

async function createSandbox(name: string): Promise<string> {
  const made = await control.fetch('/api/sandboxes', { method: 'POST', json: { name } })
  return ((await made.json()) as { id: string }).id
}

beforeAll(async () => {
  places = new FakeSandboxes()
  fake = await openFakeAnthropic({ script: HELLO, key: KEY })
  openAi = await openFakeOpenAi({ script: HELLO, key: OPENAI_KEY })
  control = await startControl({
    runner: places,
    config: {
      credentials: {
        providers: [
          {
            id: 'local',
            api: 'openai',
            baseUrl: `${fake.url}/openai`,
            secret: 'LOCAL_KEY',
            prices: { 'gpt-*': { input: 1, output: 2 } },
          },
          {
            id: 'compatible',
            api: 'openai',
            baseUrl: `${openAi.url}/v1`,
            header: 'x-api-key',
            secret: 'COMPATIBLE_KEY',
            prices: { 'gpt-*': { input: 1, output: 2, cacheRead: 0.5 } },
          },
        ],
      },
    },
    bindings: { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: fake.url, COMPATIBLE_KEY: OPENAI_KEY },
  })
  sandbox = await createSandbox('one')
  otherSandbox = await createSandbox('two')
})

afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
  await openAi[Symbol.asyncDispose]()
  await places[Symbol.asyncDispose]()
})

beforeEach(() => {
  fake.use(HELLO)
  openAi.use(HELLO)
})

function grantOf(changes: Partial<GatewayGrant> = {}): GatewayGrant {
  return {
    run: `run${runs++}`,
    sandbox,
    expiresMs: Date.now() + 60_000,
    provider: 'anthropic',
    models: [],
    budgetMicroUsd: 1_000_000,
    maxOutputTokens: 32_000,
    hosts: [],
    ...changes,
  }
}

interface Ask {
  readonly token: string
  readonly slot?: number
  readonly path?: string
  readonly method?: string
  readonly body?: Readonly<Record<string, unknown>>
  readonly signal?: AbortSignal
}

/** Sandbox `one` is at slot 0, `two` at slot 1. */
function ask({
  token,
  slot = 0,
  path = '/models/anthropic/v1/messages?beta=true',
  method = 'POST',
  body = {},
  signal,
}: Ask) {
  const message = {
    model: 'claude-opus-5-5',
    max_tokens: 1000,
    messages: [{ role: 'user', content: 'go' }],
    ...body,
  }
  return fetch(`http://127.0.0.1:${control.gatewayPort}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      [SLOT_HEADER]: String(slot),
      cookie: 'never=forwarded',
    },
    ...(method === 'GET' ? {} : { body: JSON.stringify(message) }),
    ...(signal !== undefined && { signal }),
  })
}

/** Waits until no request of a run is in progress. */
function settledUsage(run: string): Promise<GatewayUsage> {
  return eventually(
    async () => {
      const usage = await control.gatewayUsage(run)
      return usage.reservedMicroUsd === 0 && usage
    },
    { what: 'reservations to be settled' },
  )
}

async function refusalOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error: { message: string } }
  return `${response.status} ${response.headers.get('x-should-retry')} ${error.message}`
}

describe('the gateway to model APIs', () => {
  test('adds the key outside the sandbox, and forwards no other credential', async () => {
    const token = await control.grantGateway(grantOf())
    const before = fake.requests.length
    const response = await ask({ token })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ content: [{ text: 'Hello' }] })
    const [sent] = fake.requests.slice(before)
    expect(sent?.headers).toMatchObject({ 'x-api-key': KEY })
    expect(JSON.stringify(sent?.headers)).not.toContain(token)
    expect(sent?.headers['cookie']).toBeUndefined()
    expect(sent?.headers[SLOT_HEADER]).toBeUndefined()
    expect(sent?.path).toBe('/v1/messages?beta=true')
  })

  test('meters responses, streamed or not, and states the same usage', async () => {
    const grant = grantOf()
    const token = await control.grantGateway(grant)
    await (await ask({ token })).text()
    await (await ask({ token, body: { stream: true } })).text()
    // 1000 input tokens at $4 and 100 output tokens at $20 per million, twice.
    const expected = {
      requests: 2,
      costMicroUsd: 12_000,
      reservedMicroUsd: 0,
      inputTokens: 2000,
      outputTokens: 200,
    }
    expect(await settledUsage(grant.run)).toMatchObject(expected)
  })

  test('does not buffer a stream', async () => {
    fake.use(() => say('x'.repeat(400), { delayMs: 20 }))
    const token = await control.grantGateway(grantOf())
    const response = await ask({ token, body: { stream: true } })
    const reader = response.body?.getReader()
    const first = await reader?.read()
    expect(new TextDecoder().decode(first?.value)).toContain('message_start')
    expect(fake.active).toBe(1)
    await reader?.cancel()
  })

  test('settles a canceled stream by what was received', async () => {
    fake.use(() => say('x'.repeat(3000), { delayMs: 5, usage: { input_tokens: 1000, output_tokens: 900 } }))
    const grant = grantOf()
    const token = await control.grantGateway(grant)
    const controller = new AbortController()
    const response = await ask({ token, body: { stream: true }, signal: controller.signal })
    await response.body?.getReader().read()
    controller.abort()
    expect(await settledUsage(grant.run)).toMatchObject({ inputTokens: 1000 })
    await eventually(() => fake.active === 0, { what: 'the request upstream to end' })
  })
})

describe('the gateway refuses', () => {
  test('a token from the sandbox of another run, an ended grant and an expired one', async () => {
    const grant = grantOf()
    const token = await control.grantGateway(grant)
    const invalid = '401 false Sandwire: the gateway token is not valid here'
    expect(await refusalOf(await ask({ token, slot: 1 }))).toBe(invalid)
    expect(await refusalOf(await ask({ token, slot: 5 }))).toBe(invalid)
    const elsewhere = await control.grantGateway(grantOf({ sandbox: otherSandbox }))
    expect(await refusalOf(await ask({ token: elsewhere }))).toBe(invalid)
    expect((await ask({ token: elsewhere, slot: 1 })).status).toBe(200)
    expect((await ask({ token })).status).toBe(200)
    await control.endGateway(grant.run)
    expect(await refusalOf(await ask({ token }))).toBe(invalid)
    const expired = await control.grantGateway(grantOf({ expiresMs: Date.now() - 1 }))
    expect(await refusalOf(await ask({ token: expired }))).toBe(invalid)
  })

  test('tokens that it did not issue, and those that were replaced', async () => {
    const grant = grantOf()
    const old = await control.grantGateway(grant)
    const token = await control.grantGateway(grant)
    const forged = `${token.slice(0, -4)}aaaa`
    const renamed = token.replace(grant.run, 'run0')
    for (const bad of [old, forged, renamed, 'sgw_', 'sk-ant-x'])
      expect((await ask({ token: bad })).status, bad).toBe(401)
    expect((await ask({ token })).status).toBe(200)
  })

  test('other methods, paths, providers and models', async () => {
    const token = await control.grantGateway(grantOf({ models: ['claude-opus-*'] }))
    const before = fake.requests.length
    const paths = ['/v1/models', '/v1/files', '/v1/messages/batches', '/v1/messages/..%2fcomplete', '']
    for (const path of paths)
      expect((await ask({ token, path: `/models/anthropic${path}` })).status, path).toBe(404)
    expect((await ask({ token, method: 'GET' })).status).toBe(405)
    expect((await ask({ token, path: '/models/local/v1/chat/completions' })).status).toBe(403)
    expect((await ask({ token, path: '/other' })).status).toBe(404)
    const model = await refusalOf(await ask({ token, body: { model: 'claude-haiku-4-5' } }))
    expect(model).toBe('403 false Sandwire: the run may not use model "claude-haiku-4-5"')
    expect((await ask({ token, body: { model: 'unknown' } })).status).toBe(403)
    expect(fake.requests.length).toBe(before)
  })

  test('requests by which the provider would reach other hosts', async () => {
    const token = await control.grantGateway(grantOf())
    const before = fake.requests.length
    const image = { type: 'image', source: { type: 'url', url: 'https://evil.example/?secret' } }
    for (const body of [
      { mcp_servers: [{ url: 'https://evil.example' }] },
      { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] },
      { messages: [{ role: 'user', content: [image] }] },
      {
        messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [image] }] }],
      },
      { speed: 'fast' },
    ])
      expect((await ask({ token, body })).status, JSON.stringify(body)).toBe(403)
    expect(fake.requests.length).toBe(before)
  })

  test('a request beyond the budget, at once and for good', async () => {
    const grant = grantOf({ budgetMicroUsd: 5_000 })
    const token = await control.grantGateway(grant)
    expect((await ask({ token, body: { max_tokens: 200 } })).status).toBe(200)
    expect(await settledUsage(grant.run)).toMatchObject({ costMicroUsd: 6_000 })
    const refusal = await refusalOf(await ask({ token }))
    expect(refusal).toStartWith('402 false Sandwire: The run has reached its budget')
    expect(await control.gatewayUsage(grant.run)).toMatchObject({ isExhausted: true, requests: 1 })
  })

  test('more output than the grant allows, by lowering it', async () => {
    const token = await control.grantGateway(grantOf({ maxOutputTokens: 500 }))
    const thinking = { type: 'enabled', budget_tokens: 4000 }
    await ask({ token, body: { max_tokens: 8000, thinking } })
    expect(fake.requests.at(-1)?.body).toMatchObject({ max_tokens: 500, thinking: { type: 'disabled' } })
  })

  test('to spend more than the budget when requests race', async () => {
    // Each may cost $0.0204, so that four fit; the others wait for what is released.
    fake.use(({ body }) => {
      const usage = { input_tokens: 10, output_tokens: Number(body['max_tokens']) }
      return say('ok', { delayMs: 50, usage })
    })
    const grant = grantOf({ budgetMicroUsd: 90_000 })
    const token = await control.grantGateway(grant)
    const replies = await Promise.all(Array.from({ length: 12 }, () => ask({ token })))
    await Promise.all(replies.map((each) => each.text()))
    const usage = await control.gatewayUsage(grant.run)
    expect(usage.costMicroUsd + usage.reservedMicroUsd).toBeLessThanOrEqual(grant.budgetMicroUsd)
    // The fifth gets what is left.
    const count = (wanted: number): number => replies.filter(({ status }) => status === wanted).length
    expect([count(200), count(402)]).toEqual([5, 7])
  })
})

describe('errors of the model API', () => {
  test('keep their status and text, so that clients retry as they should', async () => {
    const token = await control.grantGateway(grantOf())
    for (const status of [400, 429, 500, 529]) {
      const headers = { 'retry-after': '3', 'set-cookie': 'a=b' }
      fake.use(() => say('', { fault: { kind: 'status', status, message: `Failed with ${KEY}`, headers } }))
      const response = await ask({ token })
      expect([response.status, response.headers.get('retry-after')]).toEqual([status, '3'])
      expect(response.headers.get('set-cookie')).toBeNull()
      expect(await response.json()).toMatchObject({ error: { message: 'Failed with [redacted]' } })
    }
  })

  test('do not follow redirects, and end a run whose key is refused', async () => {
    const token = await control.grantGateway(grantOf())
    const before = fake.requests.length
    const headers = { location: `${fake.url}/v1/messages` }
    fake.use(() => say('', { fault: { kind: 'raw', status: 307, headers, body: '' } }))
    expect((await ask({ token })).status).toBe(403)
    expect(fake.requests.length).toBe(before + 1)
    fake.use(() => say('', { fault: { kind: 'status', status: 401 } }))
    expect(await refusalOf(await ask({ token }))).toBe(
      '403 false Sandwire: model provider "anthropic" refuses the operator\'s key (401); check ANTHROPIC_API_KEY',
    )
  })

  test('cost what was received when a stream is cut', async () => {
    const usage = { input_tokens: 1000, output_tokens: 500 }
    fake.use(() => say('x'.repeat(900), { usage, deltaChars: 300, fault: { kind: 'cut', afterEvents: 5 } }))
    const grant = grantOf()
    const token = await control.grantGateway(grant)
    const response = await ask({ token, body: { stream: true } })
    expect(await response.text()).toEndWith(
      'data: {"type":"error","error":{"type":"api_error","message":"Sandwire: the connection to the model API broke"}}\n\n',
    )
    const used = await settledUsage(grant.run)
    expect(used.inputTokens).toBe(1000)
    expect(used.outputTokens).toBeGreaterThan(200)
  })
})

describe("the gateway to APIs in OpenAI's format", () => {
  const path = '/models/compatible/v1/chat/completions'
  const askChat = (token: string, body: Readonly<Record<string, unknown>> = {}) =>
    ask({ token, path, body: { model: 'gpt-4.1', max_tokens: undefined, ...body } })
  const chatGrant = (changes: Partial<GatewayGrant> = {}) => grantOf({ provider: 'compatible', ...changes })
  const sentBody = () => openAi.requests.at(-1)?.body

  test('adds the key to the header of the settings, and forwards no other credential', async () => {
    const token = await control.grantGateway(chatGrant())
    const response = await askChat(token, { max_tokens: 500 })
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'Hello' } }] })
    const sent = openAi.requests.at(-1)
    expect(sent).toMatchObject({ path: '/v1/chat/completions', headers: { 'x-api-key': OPENAI_KEY } })
    expect(JSON.stringify(sent?.headers)).not.toContain(token)
    expect(sent?.headers['authorization']).toBeUndefined()
  })

  test('meters responses by their usage, which it requests of streams', async () => {
    const usage = { input_tokens: 1000, output_tokens: 100, cache_read_input_tokens: 400 }
    openAi.use(() => say('Hello', { usage }))
    const grant = chatGrant()
    const token = await control.grantGateway(grant)
    await (await askChat(token)).text()
    const options = { include_usage: false }
    const stream = await (await askChat(token, { stream: true, stream_options: options })).text()
    expect(sentBody()).toMatchObject({ stream_options: { include_usage: true } })
    expect(stream).toContain('"prompt_tokens":1400')
    expect(stream).toEndWith('data: [DONE]\n\n')
    // 1000 tokens at $1, 400 at $0.50 and 100 at $2 per million, twice.
    expect(await settledUsage(grant.run)).toMatchObject({
      requests: 2,
      costMicroUsd: 2_800,
      inputTokens: 2000,
      cacheReadTokens: 800,
      outputTokens: 200,
    })
  })

  test('lowers output to the budget in every field that limits it, then refuses for good', async () => {
    const grant = chatGrant({ budgetMicroUsd: 3_000, maxOutputTokens: 1000 })
    openAi.use(() => say('Hello', { usage: { input_tokens: 1000, output_tokens: 900 } }))
    const token = await control.grantGateway(grant)
    await (await askChat(token, { max_tokens: 5, max_completion_tokens: 90_000 })).text()
    expect(sentBody()).toMatchObject({ max_completion_tokens: 1000 })
    expect(sentBody()).not.toHaveProperty('max_tokens')
    await settledUsage(grant.run)
    const refusal = await refusalOf(await askChat(token, { max_tokens: 4000 }))
    expect(refusal).toStartWith('402 false Sandwire: The run has reached its budget')
    expect(await control.gatewayUsage(grant.run)).toMatchObject({ isExhausted: true, costMicroUsd: 2_800 })
    const other = await control.grantGateway(chatGrant({ maxOutputTokens: 700 }))
    await (await askChat(other, { max_tokens: 4000 })).text()
    expect(sentBody()).toMatchObject({ max_tokens: 700 })
  })

  test('counts what was received of a stream that breaks, and of a response without usage', async () => {
    const fault = { kind: 'cut', afterEvents: 5 } as const
    openAi.use(() => say('x'.repeat(1800), { deltaChars: 300, fault }))
    const grant = chatGrant()
    const token = await control.grantGateway(grant)
    expect(await (await askChat(token, { stream: true })).text()).toContain(
      'the connection to the model API broke',
    )
    const { outputTokens } = await settledUsage(grant.run)
    // Four pieces of 300 characters.
    expect(outputTokens).toBeGreaterThan(300)
    expect(outputTokens).toBeLessThan(600)
    const body = JSON.stringify({ choices: [{ message: { content: 'x'.repeat(3000) } }] })
    const headers = { 'content-type': 'application/json' }
    openAi.use(() => say('', { fault: { kind: 'raw', status: 200, headers, body } }))
    await (await askChat(token)).text()
    expect((await settledUsage(grant.run)).outputTokens).toBeGreaterThan(outputTokens + 900)
  })

  test('refuses other paths and models, and what the provider would fetch or store', async () => {
    const token = await control.grantGateway(chatGrant())
    const before = openAi.requests.length
    for (const other of ['/v1/models', '/v1/files', '/v1/embeddings', '/v1/v1/chat/completions', '/v1/chat'])
      expect((await ask({ token, path: `/models/compatible${other}` })).status, other).toBe(404)
    expect((await askChat(token, { model: 'o9' })).status).toBe(403)
    const user = (block: unknown) => ({ messages: [{ role: 'user', content: [block] }] })
    for (const body of [
      { tools: [{ type: 'web_search' }] },
      { web_search_options: {} },
      { plugins: [{ id: 'web' }] },
      { models: ['other/model'] },
      { service_tier: 'priority' },
      { n: 2 },
      user({ type: 'image_url', image_url: { url: 'https://evil.example/?secret' } }),
      user({ type: 'file', file: { file_id: 'file-of-the-operator' } }),
    ])
      expect((await askChat(token, body)).status, JSON.stringify(body)).toBe(403)
    for (const body of [
      { previous_response_id: 'resp_1' },
      { prompt: { id: 'p' } },
      { input: [{ type: 'item_reference', id: 'i' }] },
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] },
    ]) {
      const response = await ask({
        token,
        path: '/models/compatible/v1/responses',
        body: { model: 'gpt-4.1', ...body },
      })
      expect(response.status, JSON.stringify(body)).toBe(403)
    }
    expect(openAi.requests.length).toBe(before)
  })
})

test('a run says what to set when there is no key', async () => {
  const token = await control.grantGateway(grantOf({ provider: 'local' }))
  const path = '/models/local/v1/chat/completions'
  expect(await refusalOf(await ask({ token, path }))).toBe(
    '403 false Sandwire: the key of model provider "local" is missing; set LOCAL_KEY',
  )
})
