import { describe, expect, test } from 'bun:test'
import { callTool, inTurns, openFakeAnthropic, say, withFaults } from './index.ts'

const TOOLS = [{ name: 'Bash', input_schema: { type: 'object' } }]
const ask = (url: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${url}/v1/messages?beta=true`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'm', max_tokens: 10, tools: TOOLS, ...body }),
  })
const user = (content: unknown) => ({ role: 'user', content })
const result = user([{ type: 'tool_result', tool_use_id: 't', content: 'listing' }])

describe('fake Messages API', () => {
  test('replies by the turn of the conversation, whatever is retried', async () => {
    const script = inTurns(callTool('Bash', { command: 'ls' }), say('Done'))
    await using fake = await openFakeAnthropic({ script })
    for (const _ of [1, 2]) {
      const first = (await (await ask(fake.url, { messages: [user('go')] })).json()) as object
      expect(first).toMatchObject({
        stop_reason: 'tool_use',
        content: [{ type: 'tool_use', name: 'Bash', input: { command: 'ls' } }],
      })
    }
    const second = await ask(fake.url, { messages: [user('go'), result, { role: 'system', content: 'x' }] })
    expect(await second.json()).toMatchObject({ stop_reason: 'end_turn', usage: { output_tokens: 20 } })
    expect(fake.requests.map(({ toolResults, lastToolResult }) => [toolResults, lastToolResult])).toEqual([
      [0, ''],
      [0, ''],
      [1, 'listing'],
    ])
  })

  test('streams the same message as events', async () => {
    await using fake = await openFakeAnthropic({ script: () => say('Hello there', { deltaChars: 6 }) })
    const text = await (await ask(fake.url, { stream: true, messages: [user('go')] })).text()
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(
      ([, data = '']) => JSON.parse(data) as { type: string },
    )
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(events[2]).toMatchObject({ delta: { type: 'text_delta', text: 'Hello ' } })
  })

  test('fails as told, then recovers', async () => {
    const faults = [
      { kind: 'status', status: 529 },
      { kind: 'cut', afterEvents: 2 },
    ] as const
    await using fake = await openFakeAnthropic({ script: withFaults(faults, () => say('ok')), key: 'k' })
    const send = () => ask(fake.url, { stream: true, messages: [user('go')] }, { 'x-api-key': 'k' })
    const overloaded = await send()
    expect([overloaded.status, await overloaded.json()]).toMatchObject([
      529,
      { error: { type: 'overloaded_error' } },
    ])
    const cut = await send()
    expect(await cut.text().catch(() => 'cut')).toBe('cut')
    expect(await (await send()).text()).toContain('message_stop')
    expect((await ask(fake.url, {}, { 'x-api-key': 'other' })).status).toBe(401)
  })
})
