import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, OPCODE, type RawHandshake } from '@sandwire/testing'
import { type RunningControl, startControl } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { JWT_SECRET, serviceToken } from './support/service-token.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { fieldOf } from './support/json.ts'

const COMMANDS = {
  blocked: ['reboot'],
  templates: [
    {
      id: 'show',
      title: 'Show what it was given',
      argv: ['sh', '-c', 'printf "<%s>" "$@"; printf "[$GREETING][$LD_PRELOAD]"', 'sh', '{one}', 'x={two}'],
      params: { one: { pattern: '.*' }, two: { pattern: '.*', default: 'none' } },
      env: { GREETING: 'hello' },
    },
    {
      id: 'lang',
      title: 'Say its language',
      argv: ['sh', '-c', 'printf "LANG is <$LANG>"'],
      env: { LANG: 'C' },
    },
    { id: 'wait', title: 'Wait for input', argv: ['cat'], mode: 'pipe' },
  ],
}
const V1 = { subprotocols: ['sandwire.v1'] }
/** The same account with more and with fewer scopes. */
const OWNER = serviceToken('ada', ['connect', 'exec', 'admin'])
const CONNECT = serviceToken('ada', ['connect'])
const CREATE_ID = 'ab'.repeat(16)

let sandboxes: RealSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new RealSandboxes()
  control = await startControl({
    runner: sandboxes,
    config: { commands: COMMANDS },
    bindings: { JWT_SECRET },
  })
  expect((await post('/api/sandboxes', { name: 'dev' }, OWNER)).status).toBe(201)
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

const bearer = (token: string) => ({ headers: [['Authorization', `Bearer ${token}`]] as const })
const post = (path: string, json: unknown, token: string): Promise<Response> =>
  control.fetch(path, { method: 'POST', json, headers: { authorization: `Bearer ${token}` } })
const get = (path: string, token: string): Promise<Response> =>
  control.fetch(path, { headers: { authorization: `Bearer ${token}` } })
const field = (value: unknown, name: string): unknown => fieldOf(value, name)

async function codeOf(response: Response): Promise<string> {
  return `${response.status} ${String(field(field(await response.json(), 'error'), 'code'))}`
}

/** The code of an error frame. */
async function frameCodeOf(handshake: RawHandshake): Promise<string> {
  if (handshake.kind !== 'open') return refusalOf(handshake)
  await using socket = handshake.socket
  const frame: unknown = JSON.parse(new TextDecoder().decode((await socket.nextFrame()).payload))
  return String(field(frame, 'code') ?? field(frame, 'type'))
}

async function sessionsNow(): Promise<number> {
  const { sessions } = (await (await get('/api/account/sessions', OWNER)).json()) as { sessions: unknown[] }
  return sessions.length
}

const hello = (env: Record<string, string>): string =>
  JSON.stringify({
    type: 'hello',
    version: 1,
    identity: crypto.randomUUID().replaceAll('-', ''),
    resuming: false,
    received: 0,
    window: 65536,
    cols: 80,
    rows: 24,
    env,
  })

describe('a credential with the scope connect only (threat T9)', () => {
  test('starts no command with an upgrade', async () => {
    const before = await sessionsNow()
    const session = `${'0'.repeat(32)}.${'1'.repeat(26)}`
    for (const query of [
      'cmd=sh',
      'cmd=cat&arg=x',
      '',
      'arg=x',
      'mode=pty',
      `createId=${CREATE_ID}`,
      `session=${session}&cmd=sh`,
      `session=${session}&arg=sh`,
      'cmd=',
      'cmd=a&cmd=b',
      'c%6Dd=sh',
      'template=wait&cmd=sh',
      'template=show&param=one%3Da&arg=-c',
    ]) {
      const path = `/attach?sandbox=dev&${query}`
      expect([query, refusalOf(await upgrade(control, path, bearer(CONNECT)))]).toEqual([
        query,
        '403 forbidden',
      ])
      const v1 = await upgrade(control, path, { ...bearer(CONNECT), ...V1 })
      expect([query, await frameCodeOf(v1)]).toEqual([query, 'forbidden'])
    }
    expect(await sessionsNow()).toBe(before)
  })

  test('starts no command through the API', async () => {
    const before = await sessionsNow()
    for (const body of [
      {},
      { cmd: 'sh' },
      { cmd: 'sh', args: ['-c', 'id'] },
      { env: { A: '1' } },
      { params: {} },
    ])
      expect(await codeOf(await post('/api/sandboxes/dev/sessions', body, CONNECT))).toBe('403 forbidden')
    expect(await codeOf(await post('/api/sandboxes/dev/exec', { cmd: 'id' }, CONNECT))).toBe('403 forbidden')
    expect(await sessionsNow()).toBe(before)
  })

  test('runs a template in its environment and reads its output', async () => {
    const body = { template: 'show', params: { one: '$(id) a  b', two: '; id' } }
    const response = await post('/api/sandboxes/dev/sessions', body, CONNECT)
    expect(response.status).toBe(201)
    const id = String(field(await response.json(), 'id'))
    const output = await eventually(
      async () => {
        const text = await (await get(`/api/sandboxes/dev/sessions/${id}/output`, CONNECT)).text()
        return text.endsWith(']') ? text : undefined
      },
      { what: 'its output' },
    )
    expect(output).toBe('<$(id) a  b><x=; id>[hello][]')
  })

  test('cannot change the environment of a template in hello', async () => {
    for (const [env, expected] of [
      [{ LD_PRELOAD: '/tmp/x.so' }, 'forbidden'],
      [{ GREETING: 'other' }, 'forbidden'],
      [{ TERM: 'dumb' }, 'welcome'],
    ] as const) {
      const path = '/attach?sandbox=dev&template=show&param=one%3Da'
      const handshake = await upgrade(control, path, { ...bearer(CONNECT), ...V1 })
      if (handshake.kind !== 'open') throw new Error(refusalOf(handshake))
      await using socket = handshake.socket
      await socket.sendFrame({ opcode: OPCODE.text, payload: new TextEncoder().encode(hello(env)) })
      const frame: unknown = JSON.parse(new TextDecoder().decode((await socket.nextFrame()).payload))
      expect([env, field(frame, 'code') ?? field(frame, 'type')]).toEqual([env, expected])
    }
  })

  /** The role granted for a requested one, or the error code. */
  async function roleIn(path: string, options: Parameters<typeof upgrade>[2]): Promise<string> {
    const handshake = await upgrade(control, path, options)
    if (handshake.kind !== 'open') return refusalOf(handshake)
    await using socket = handshake.socket
    await socket
      .sendFrame({ opcode: OPCODE.text, payload: new TextEncoder().encode(hello({})) })
      .catch(() => undefined)
    const frame: unknown = JSON.parse(new TextDecoder().decode((await socket.nextFrame()).payload))
    return String(field(frame, 'code') ?? field(frame, 'role'))
  }

  async function ticketFor(session: string, token: string): Promise<Parameters<typeof upgrade>[2]> {
    const given: unknown = await (await post('/api/tickets', { session, role: 'driver' }, token)).json()
    const subprotocols = ['sandwire.v1', `sandwire.ticket.${String(field(given, 'ticket'))}`]
    return { subprotocols, headers: [] }
  }

  test('can view a shell but send it no input, whatever role it requests', async () => {
    const begun = await post('/api/sandboxes/dev/sessions', { cmd: 'sh', mode: 'pty', keep: 60 }, OWNER)
    const shell = String(field(await begun.json(), 'id'))
    const options = { ...bearer(CONNECT), ...V1 }
    for (const query of ['role=driver&take=1', 'role=driver', 'role=collaborator'])
      for (const path of [`/terminal/${shell}?${query}`, `/attach?session=${shell}&${query}`])
        expect([path, await roleIn(path, options)]).toEqual([path, 'forbidden'])
    expect(await roleIn(`/terminal/${shell}`, options)).toBe('viewer')
    expect(await roleIn(`/terminal/${shell}?role=driver`, await ticketFor(shell, CONNECT))).toBe('forbidden')
    expect(await roleIn(`/terminal/${shell}?role=driver`, { ...bearer(OWNER), ...V1 })).toBe('driver')
  })

  test('sends input to a template it started, also after a reconnect', async () => {
    const begun = await post('/api/sandboxes/dev/sessions', { template: 'wait', keep: 60 }, CONNECT)
    const wait = String(field(await begun.json(), 'id'))
    const path = `/terminal/${wait}?role=driver&take=1`
    expect(await roleIn(path, { ...bearer(CONNECT), ...V1 })).toBe('driver')
    expect(await roleIn(path, await ticketFor(wait, CONNECT))).toBe('driver')
  })

  test('creates and starts no sandbox', async () => {
    const path = '/attach?sandbox=fresh&template=wait'
    expect(refusalOf(await upgrade(control, path, bearer(CONNECT)))).toMatch(/^40[34] /)
    const list = await (await get('/api/sandboxes', OWNER)).text()
    expect(list).not.toContain('fresh')
  })
})

describe('a template', () => {
  test('is listed with its parameters and without its command line', async () => {
    const text = await (await get('/api/templates', CONNECT)).text()
    expect(JSON.parse(text)).toEqual({
      templates: [
        {
          id: 'show',
          title: 'Show what it was given',
          description: '',
          mode: 'pipe',
          params: [
            {
              name: 'one',
              description: '',
              maxLength: 256,
              pattern: '.*',
            },
            {
              name: 'two',
              description: '',
              maxLength: 256,
              pattern: '.*',
              default: 'none',
            },
          ],
        },
        { id: 'lang', title: 'Say its language', description: '', mode: 'pipe', params: [] },
        { id: 'wait', title: 'Wait for input', description: '', mode: 'pipe', params: [] },
      ],
    })
    expect(text).not.toContain('printf')
  })

  test('runs over a plain connection and is named in the log', async () => {
    const handshake = await upgrade(control, '/attach?sandbox=dev&template=wait', bearer(CONNECT))
    if (handshake.kind !== 'open') throw new Error(refusalOf(handshake))
    await using socket = handshake.socket
    await socket.sendFrame({ opcode: OPCODE.binary, payload: new TextEncoder().encode('there and back') })
    const frame = await socket.nextFrame()
    expect(new TextDecoder().decode(frame.payload)).toContain('there and back')
    await eventually(() => control.log.some((line) => line.includes('"template":"wait"')), {
      what: 'the line',
    })
  })

  test('is named in the audit of the owner, also when started through the API', async () => {
    expect((await post('/api/sandboxes/dev/sessions', { template: 'lang' }, CONNECT)).status).toBe(201)
    const written = await eventually(
      async () => {
        const { rows } = (await (await get('/api/audit', OWNER)).json()) as {
          rows: { template?: string | null }[]
        }
        return rows.some(({ template }) => template === 'lang') ? rows : undefined
      },
      { what: 'the row' },
    )
    expect(written.filter(({ template }) => template === 'wait').length).toBeGreaterThan(0)
  })

  test('keeps its variables, also those that a terminal sets', async () => {
    const handshake = await upgrade(control, '/attach?sandbox=dev&template=lang', { ...bearer(OWNER), ...V1 })
    if (handshake.kind !== 'open') throw new Error(refusalOf(handshake))
    await using socket = handshake.socket
    await socket.sendFrame({
      opcode: OPCODE.text,
      payload: new TextEncoder().encode(hello({ LANG: 'de_DE.UTF-8' })),
    })
    let text = ''
    while (!text.includes('>')) text += new TextDecoder().decode((await socket.nextFrame()).payload)
    expect(text).toEndWith('LANG is <C>')
  })

  test.each([
    ['an unknown id', { template: 'nothing' }, '422 bad_template'],
    ['a missing parameter', { template: 'show' }, '422 bad_template'],
    ['an option', { template: 'show', params: { one: '--CANARY' } }, '422 bad_template'],
    ['a newline', { template: 'show', params: { one: 'CANARY\nb' } }, '422 bad_template'],
    ['a parameter of another template', { template: 'wait', params: { one: 'CANARY' } }, '422 bad_template'],
    ['a number', { template: 'show', params: { one: 1 } }, '400 bad_request'],
    ['a list', { template: 'show', params: ['CANARY'] }, '400 bad_request'],
    ['a command beside it', { template: 'wait', cmd: 'CANARY' }, '400 bad_request'],
    ['arguments beside it', { template: 'wait', args: ['CANARY'] }, '400 bad_request'],
    ['an environment beside it', { template: 'wait', env: { A: 'CANARY' } }, '400 bad_request'],
    ['a folder beside it', { template: 'wait', cwd: 'CANARY' }, '400 bad_request'],
  ])('is refused with %s, without echoing it', async (_, body, expected) => {
    const response = await post('/api/sandboxes/dev/sessions', body, OWNER)
    const text = await response.clone().text()
    expect(text).not.toContain('CANARY')
    expect(await codeOf(response)).toBe(expected)
  })

  test('is refused with __proto__ and with a duplicate key', async () => {
    for (const body of [
      '{"template":"wait","params":{"__proto__":"x"}}',
      '{"template":"show","params":{"one":"a","one":"b"}}',
      '{"template":"wait","template":"show"}',
    ]) {
      const headers = { authorization: `Bearer ${OWNER}`, 'content-type': 'application/json' }
      const response = await control.fetch('/api/sandboxes/dev/sessions', { method: 'POST', body, headers })
      expect([body, response.status === 422 || response.status === 400]).toEqual([body, true])
    }
  })
})

describe('the operator', () => {
  test('blocks commands by name, for owners too', async () => {
    for (const cmd of ['reboot', '/sbin/reboot']) {
      const path = `/attach?sandbox=dev&cmd=${encodeURIComponent(cmd)}`
      expect(refusalOf(await upgrade(control, path, bearer(OWNER)))).toBe('403 command_blocked')
      for (const route of ['sessions', 'exec'])
        expect(await codeOf(await post(`/api/sandboxes/dev/${route}`, { cmd }, OWNER))).toBe(
          '403 command_blocked',
        )
    }
  })

  test('can allow templates only', async () => {
    await using places = new RealSandboxes()
    await using strict = await startControl({
      runner: places,
      config: { commands: { ...COMMANDS, free: 'nobody' } },
    })
    expect(refusalOf(await upgrade(strict, '/attach?sandbox=dev&cmd=ls'))).toBe('403 forbidden')
    expect(refusalOf(await upgrade(strict, '/attach?sandbox=dev'))).toBe('403 forbidden')
    const handshake = await upgrade(strict, '/attach?sandbox=dev&template=wait')
    expect(handshake.kind).toBe('open')
    if (handshake.kind === 'open') handshake.socket.reset()
    const window = await strict.fetch('/api/sandboxes/dev/tmux', {
      method: 'POST',
      json: { type: 'new_window' },
    })
    expect(await codeOf(window)).toBe('403 forbidden')
  })

  test('gets the problems of the settings, and no request is served', async () => {
    await using places = new RealSandboxes()
    const templates = [
      { id: 'bad', title: 'x', argv: ['sh', '-c', 'echo {a}'], params: { a: { pattern: '.*' } } },
    ]
    await using broken = await startControl({ runner: places, config: { commands: { templates } } })
    expect((await broken.fetch('/health')).status).toBe(500)
    await eventually(() => broken.log.some((line) => line.includes('could be code')), {
      what: 'the reason',
    })
  })
})

test('(threat T9) the internal token has no more rights than the credential', async () => {
  await using places = new FakeSandboxes()
  await using server = await startControl({
    runner: places,
    config: { commands: COMMANDS },
    bindings: { JWT_SECRET },
  })
  const claimsOf = async (query: string, token: string) => {
    const handshake = await upgrade(server, `/attach?${query}`, { ...bearer(token), ...V1 })
    if (handshake.kind !== 'open') throw new Error(refusalOf(handshake))
    await using socket = handshake.socket
    const session = new TextDecoder().decode((await socket.nextFrame()).payload).replace('session ', '')
    const { exec, starts, env } = places.seen.at(-1)?.claims ?? {}
    return { session, exec, starts, env }
  }
  const { session, ...started } = await claimsOf('sandbox=dev&cmd=cat', OWNER)
  expect(started).toEqual({ exec: true, starts: undefined, env: undefined })
  expect(await claimsOf(`session=${session}`, CONNECT)).toMatchObject({ exec: false, starts: undefined })
  for (const token of [CONNECT, OWNER]) {
    const template = await claimsOf('sandbox=dev&template=lang', token)
    expect(template).toMatchObject({ exec: false, starts: true, env: { LANG: 'C' } })
  }
})
