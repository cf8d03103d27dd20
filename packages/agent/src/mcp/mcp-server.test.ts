import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_PENDING_CALLS, type McpEffect, McpServer } from './mcp-server.ts'
import { bytesOfKey, bytesOfText } from './terminal-keys.ts'
import { READ_ONLY_TERMINAL_TOOLS, TERMINAL_ARGUMENTS, TERMINAL_TOOLS } from './terminal-tools.ts'

function open(): McpServer {
  return new McpServer({ name: 'n', version: '1', instructions: 'i', tools: TERMINAL_TOOLS })
}

const send = (server: McpServer, message: object): readonly McpEffect[] =>
  server.line(JSON.stringify({ jsonrpc: '2.0', ...message }), false)

/** The messages among effects. */
function sent(effects: readonly McpEffect[]): readonly Readonly<Record<string, unknown>>[] {
  return effects.flatMap((effect) =>
    effect.kind === 'send' ? [JSON.parse(effect.line) as Record<string, unknown>] : [],
  )
}

function opened(): McpServer {
  const server = open()
  send(server, { id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } })
  return server
}

const list = { method: 'tools/call', params: { name: 'terminal_list' } }

describe('McpServer', () => {
  test('agrees on a version that it knows, and offers its own otherwise', () => {
    const versionFor = (protocolVersion: unknown): unknown =>
      sent(send(open(), { id: 1, method: 'initialize', params: { protocolVersion } }))[0]?.['result']
    expect(versionFor('2024-11-05')).toMatchObject({ protocolVersion: '2024-11-05', instructions: 'i' })
    expect(versionFor('2099-01-01')).toMatchObject({ protocolVersion: '2025-06-18' })
    expect(versionFor(7)).toMatchObject({ capabilities: { tools: {} }, serverInfo: { name: 'n' } })
  })

  test('answers nothing but pings before it is initialized', () => {
    const server = open()
    expect(sent(send(server, { id: 1, method: 'ping' }))).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }])
    expect(sent(send(server, { id: 2, ...list }))).toMatchObject([{ id: 2, error: { code: -32_600 } }])
    expect(sent(send(server, { id: 3, method: 'tools/list' }))).toMatchObject([{ error: { code: -32_600 } }])
  })

  test('lists tools, and refuses methods and tools that it does not have', () => {
    const server = opened()
    const tools = TERMINAL_TOOLS.map(({ name }) => expect.objectContaining({ name }))
    expect(sent(send(server, { id: 1, method: 'tools/list' }))).toMatchObject([{ result: { tools } }])
    expect(sent(send(server, { id: 2, method: 'resources/list' }))).toMatchObject([
      { error: { code: -32_601 } },
    ])
    const call = { method: 'tools/call', params: { name: 'rm' } }
    expect(sent(send(server, { id: 3, ...call }))).toMatchObject([{ error: { code: -32_602 } }])
    const args = { method: 'tools/call', params: { name: 'terminal_list', arguments: [] } }
    expect(sent(send(server, { id: 4, ...args }))).toMatchObject([{ error: { code: -32_602 } }])
    expect(send(server, { method: 'notifications/initialized' })).toEqual([])
  })

  test('runs a call, and answers it once', () => {
    const server = opened()
    expect(send(server, { id: 'a', ...list })).toEqual([
      { kind: 'call', id: 'a', tool: 'terminal_list', args: {} },
    ])
    expect(sent(send(server, { id: 'a', ...list }))).toMatchObject([{ error: { code: -32_600 } }])
    expect(sent(server.finished('a', { text: 'x', isError: true }))).toEqual([
      { jsonrpc: '2.0', id: 'a', result: { content: [{ type: 'text', text: 'x' }], isError: true } },
    ])
    expect(server.finished('a', { text: 'x', isError: true })).toEqual([])
  })

  test('drops the result of a canceled call', () => {
    const server = opened()
    send(server, { id: 1, ...list })
    const cancel = { method: 'notifications/cancelled', params: { requestId: 1 } }
    expect(send(server, cancel)).toEqual([{ kind: 'cancel', id: 1 }])
    expect(send(server, cancel)).toEqual([])
    expect(server.finished(1, { text: 'x', isError: false })).toEqual([])
  })

  test('bounds the calls in progress', () => {
    const server = opened()
    for (let id = 0; id < MAX_PENDING_CALLS; id += 1)
      expect(send(server, { id, ...list })).toMatchObject([{ kind: 'call' }])
    expect(sent(send(server, { id: 99, ...list }))).toMatchObject([{ error: { code: -32_000 } }])
    server.finished(0, { text: '', isError: false })
    expect(send(server, { id: 99, ...list })).toMatchObject([{ kind: 'call' }])
  })

  test('refuses lines that were too long, and ignores empty ones', () => {
    expect(sent(open().line('{', true))).toMatchObject([{ id: null, error: { code: -32_600 } }])
    expect(open().line(' ', false)).toEqual([])
  })

  test('never throws, and answers each request at most once', () => {
    const method = fc.constantFrom(
      'initialize',
      'ping',
      'tools/list',
      'tools/call',
      'notifications/cancelled',
    )
    const params = fc.oneof(
      fc.record(
        { name: fc.constantFrom('terminal_list', 'x'), arguments: fc.jsonValue() },
        { requiredKeys: [] },
      ),
      fc.record({ requestId: fc.integer({ min: 0, max: 5 }) }),
      fc.jsonValue(),
    )
    const message = fc.record({
      jsonrpc: fc.constant('2.0'),
      id: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.jsonValue()),
      method,
      params,
    })
    fc.assert(
      fc.property(fc.array(message, { maxLength: 30 }), (messages) => {
        const server = open()
        for (const each of messages)
          expect(server.line(JSON.stringify(each), false).length).toBeLessThanOrEqual(1)
      }),
      { numRuns: 500 },
    )
  })
})

test('the schema of each tool names exactly the arguments that its decoder takes', () => {
  expect(TERMINAL_TOOLS.map(({ name }) => name)).toEqual(Object.keys(TERMINAL_ARGUMENTS))
  for (const { name, inputSchema } of TERMINAL_TOOLS) {
    const { describe: described } = TERMINAL_ARGUMENTS[name as keyof typeof TERMINAL_ARGUMENTS]
    const { properties, required } = inputSchema as { properties: object; required: readonly string[] }
    for (const property of Object.keys(properties)) expect(described).toContain(`${property}:`)
    const example = { terminal: 't1', until: 'quiet' }
    const given = Object.fromEntries(Object.entries(example).filter(([key]) => required.includes(key)))
    expect(TERMINAL_ARGUMENTS[name as keyof typeof TERMINAL_ARGUMENTS].decode(given)).toBeDefined()
    expect(
      TERMINAL_ARGUMENTS[name as keyof typeof TERMINAL_ARGUMENTS].decode({ ...given, other: 1 }),
    ).toBeUndefined()
  }
  expect(READ_ONLY_TERMINAL_TOOLS).not.toContain('terminal_type')
})

test('keys and text become what a terminal sends', () => {
  expect(bytesOfKey('Enter', false)).toBe('\r')
  expect(bytesOfKey('ctrl-c', false)).toBe('\u0003')
  expect(bytesOfKey('up', false)).toBe('\u001b[A')
  expect(bytesOfKey('up', true)).toBe('\u001bOA')
  expect(bytesOfText('a\r\nb\n')).toBe('a\rb\r')
  for (const key of ['', 'ctrl-', 'ctrl-1', 'toString', 'f99'])
    expect(() => bytesOfKey(key, false)).toThrow('Unknown key')
})
