import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS } from '@sandwire/internal-api'
import { eventually, rejectionOf } from '@sandwire/testing'
import { findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { SessionRequest, SessionStart } from '../src/providers/provider.ts'
import { ClaudeCodec, type ClaudeCodecOptions } from '../src/providers/sprites/claude-codec.ts'
import { ClaudeSession } from '../src/providers/sprites/claude-session.ts'
import type { ExecEffect } from '../src/providers/sprites/exec-codec.ts'
import {
  type FakeClient,
  openSpritesProvider,
  SANDBOX,
  type SpritesUnderTest,
} from './support/fake-sprites-provider.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
type Message = Readonly<Record<string, unknown>>

describe('the messages of a session of Claude Code in a sprite', () => {
  let saved = ''
  const sessionOf = (state = ClaudeSession.begin({})): ClaudeSession =>
    new ClaudeSession(state, (changed) => {
      saved = changed
    })
  const codecOf = (over: Partial<ClaudeCodecOptions> = {}): ClaudeCodec =>
    new ClaudeCodec({
      name: 'token',
      session: sessionOf(),
      isNew: true,
      historyBytes: 0,
      mayInput: true,
      mintId: () => 'id',
      ...over,
    })
  const out = (...lines: readonly (object | string)[]) => ({
    kind: 'output' as const,
    stream: 'stdout' as const,
    bytes: bytes(lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')),
  })
  /** Texts for the client, what is written, and everything else as it is. */
  const seen = (effects: readonly ExecEffect[]): unknown[] =>
    effects.map((effect) => {
      if (effect.do === 'toClient') return JSON.parse(effect.text) as unknown
      return effect.do === 'write'
        ? { write: JSON.parse(new TextDecoder().decode(effect.bytes)) as unknown }
        : effect
    })
  const send = (codec: ClaudeCodec, message: object) => seen(codec.fromClient(JSON.stringify(message)))
  const said = (uuid: string): Message => ({ type: 'assistant', uuid, message: { content: [] } })
  const ask = (request_id: string): Message => ({
    type: 'control_request',
    request_id,
    request: { subtype: 'can_use_tool', tool_name: 'Bash', input: { command: 'ls' }, tool_use_id: 'use-1' },
  })
  const initialized = (account: object) => ({
    type: 'control_response',
    response: { subtype: 'success', request_id: 'sandwire-initialize', response: { account } },
  })
  const ERROR = { type: 'system', subtype: 'error', message: expect.any(String) as unknown }
  const INIT = { type: 'system', subtype: 'init', uuid: 'init' }

  test('begin with the settings, and ask the program to answer', () => {
    const session = sessionOf(ClaudeSession.begin({ model: 'sonnet', maxThinkingTokens: 5 }))
    const codec = codecOf({ session })
    expect(seen(codec.greeting())).toEqual([
      {
        type: 'system',
        subtype: 'connected',
        session_id: 'token',
        resumed: false,
        settings: { max_thinking_tokens: 5, model: 'sonnet' },
      },
      {
        write: {
          type: 'control_request',
          request_id: 'sandwire-initialize',
          request: { subtype: 'initialize' },
        },
      },
    ])
    expect(codec.isStarted).toBe(false)
    expect(codec.output(out(initialized({ tokenSource: 'claude.ai', apiProvider: 'firstParty' })))).toEqual(
      [],
    )
    expect(codec.isStarted).toBe(true)
  })

  test.each([
    [{ tokenSource: 'none', apiProvider: 'firstParty' }, true],
    [{ tokenSource: 'none', apiKeySource: 'none', apiProvider: 'firstParty' }, true],
    [{ tokenSource: 'none', apiKeySource: 'ANTHROPIC_API_KEY', apiProvider: 'firstParty' }, false],
    [{ tokenSource: 'none', apiProvider: 'bedrock' }, false],
    [{}, false],
  ])('are refused at once without a login: %j', (account, isRefused) => {
    expect(codecOf().output(out(initialized(account)))).toEqual(
      isRefused ? [{ do: 'refuse', message: expect.stringContaining('not signed in') as string }] : [],
    )
  })

  test('have the lines of the program unchanged, however the API divides them', () => {
    const lines = ['{"type":"assistant",  "n":1.00,"t":"ü€"}', 'not JSON', '{"type":"result","uuid":"r"}']
    const whole = bytes(`${lines.join('\n')}\n`)
    for (const size of [1, 2, 7, 1_000]) {
      const codec = codecOf()
      const texts: string[] = []
      for (let at = 0; at < whole.length; at += size)
        for (const effect of codec.output({ ...out(), bytes: whole.subarray(at, at + size) }))
          if (effect.do === 'toClient') texts.push(effect.text)
      expect(texts).toEqual([lines[0] ?? '', '{"type":"raw","data":"not JSON"}', lines[2] ?? ''])
    }
    const codec = codecOf()
    expect(seen(codec.output({ ...out('oh'), stream: 'stderr' }))).toEqual([
      { type: 'system', subtype: 'stderr', message: 'oh' },
    ])
  })

  test('say that a line was too long, and go on with the next', () => {
    const codec = codecOf()
    expect(seen(codec.output(out('x'.repeat(5_000_000), said('1'))))).toEqual([ERROR, said('1')])
  })

  test('write what the client sends as lines', () => {
    const codec = codecOf()
    expect(send(codec, { type: 'user', message: 'hi' })).toEqual([
      {
        write: {
          type: 'user',
          message: { role: 'user', content: 'hi' },
          parent_tool_use_id: null,
          uuid: 'id',
        },
      },
    ])
    expect(send(codec, { type: 'user', message: 'hi', mode: 'plan' })[0]).toEqual({
      write: {
        type: 'control_request',
        request_id: 'id',
        request: { subtype: 'set_permission_mode', mode: 'plan' },
      },
    })
    expect(JSON.parse(saved)).toMatchObject({ mode: 'plan' })
    expect(send(codec, { type: 'user', message: 'hi', mode: 'plan' })).toHaveLength(1)
    expect(send(codec, { type: 'interrupt' })).toMatchObject([
      { write: { request: { subtype: 'interrupt' } } },
      { subtype: 'interrupted', session_id: 'token' },
    ])
    expect(send(codec, { type: 'ping' })).toEqual([{ type: 'pong' }])
    expect(send(codec, { type: 'restart' })).toEqual([ERROR])
  })

  test('of a client that only watches are refused', () => {
    const codec = codecOf({ mayInput: false })
    for (const message of [
      { type: 'user', message: 'hi' },
      { type: 'interrupt' },
      { type: 'control', subtype: 'set_model', model: 'opus' },
      { type: 'control_response', request_id: 'r1', decision: 'allow' },
    ])
      expect(send(codec, message)).toEqual([ERROR])
    expect(send(codec, { type: 'ping' })).toEqual([{ type: 'pong' }])
  })

  test('answer a request once, whichever client does, and tell the others', () => {
    const session = sessionOf()
    const [first, second, late] = [codecOf({ session }), codecOf({ session }), codecOf({ session })]
    for (const codec of [first, second]) expect(seen(codec.output(out(ask('r1'))))).toEqual([ask('r1')])
    const allow = { type: 'control_response', request_id: 'r1', decision: 'allow' }
    expect(send(first, allow)).toEqual([
      {
        write: {
          type: 'control_response',
          response: {
            subtype: 'success',
            request_id: 'r1',
            response: { behavior: 'allow', updatedInput: { command: 'ls' } },
          },
        },
      },
      { do: 'toOthers', text: '{"type":"control_cancel_request","request_id":"r1"}' },
    ])
    expect(send(second, { ...allow, decision: 'deny' })).toEqual([ERROR])
    expect(seen(late.output(out(ask('r1'))))).toEqual([
      ask('r1'),
      { type: 'control_cancel_request', request_id: 'r1' },
    ])
    for (const codec of [late, first]) expect(send(codec, allow)).toEqual([ERROR])
  })

  test('refuse requests of the program that no client can answer', () => {
    const line = { type: 'control_request', request_id: 'h1', request: { subtype: 'hook_callback' } }
    expect(seen(codecOf().output(out(line)))).toMatchObject([
      line,
      { write: { type: 'control_response', response: { subtype: 'error', request_id: 'h1' } } },
    ])
  })

  describe('for a client that joins', () => {
    const piece = { type: 'stream_event', uuid: 'p', event: {} }
    /** A session whose last client was sent this many of `HISTORY`. */
    const HISTORY = [INIT, said('1'), piece, ask('r1'), said('2'), piece, said('3')]
    const leftAt = (count: number): ClaudeSession => {
      const session = sessionOf()
      const codec = codecOf({ session })
      codec.output(out(...HISTORY.slice(0, count)))
      return sessionOf(saved)
    }
    const join = (session: ClaudeSession, history: readonly (object | string)[]) => {
      const replay = out(...history)
      return { codec: codecOf({ session, isNew: false, historyBytes: replay.bytes.length }), replay }
    }

    test.each([2, 3])('have what no client was sent, after what it needs (%d lines)', (count) => {
      const { codec, replay } = join(leftAt(count), HISTORY)
      expect(seen(codec.greeting())).toMatchObject([{ subtype: 'connected', resumed: true }])
      expect(seen([...codec.output(replay), ...codec.replayed()])).toEqual([
        INIT,
        ask('r1'),
        said('2'),
        said('3'),
      ])
      expect(codec.replay).toBe('none')
      // Live again.
      expect(seen(codec.output(out(piece)))).toEqual([piece])
    })

    test('have the last `system/init` also when the API replays only what came later', () => {
      const { codec, replay } = join(leftAt(5), HISTORY.slice(3))
      expect(seen([...codec.output(replay), ...codec.replayed()])).toEqual([INIT, ask('r1'), said('3')])
      const late = join(leftAt(2), [said('8'), said('9')])
      expect(seen([...late.codec.output(late.replay), ...late.codec.replayed()])).toEqual([
        ERROR,
        INIT,
        said('8'),
        said('9'),
      ])
      const newer = { ...INIT, uuid: 'init-2' }
      const again = join(leftAt(2), [newer, said('9')])
      expect(seen([...again.codec.output(again.replay), ...again.codec.replayed()])).toEqual([
        ERROR,
        newer,
        said('9'),
      ])
    })

    test('repeat a request that is still open, which can then be answered', () => {
      const { codec, replay } = join(leftAt(7), HISTORY)
      expect(seen([...codec.output(replay), ...codec.replayed()])).toEqual([INIT, ask('r1')])
      expect(send(codec, { type: 'control_response', request_id: 'r1', decision: 'deny' })[0]).toMatchObject({
        write: { response: { response: { behavior: 'deny' } } },
      })
    })

    test.each<[string, Message]>([
      ['the program withdrew', { type: 'control_cancel_request', request_id: 'r1' }],
      ['whose tool has run', { type: 'user', message: { content: [{ tool_use_id: 'use-1' }] } }],
      ['whose turn has ended', { type: 'result', uuid: 'end' }],
    ])('do not repeat a request %s', (_, after) => {
      const history = [...HISTORY.slice(0, 5), after, said('3')]
      const session = sessionOf()
      codecOf({ session }).output(out(...history))
      const { codec, replay } = join(sessionOf(saved), history)
      expect(seen([...codec.output(replay), ...codec.replayed()])).toEqual([INIT])
    })

    test('say so when the API has dropped lines, and leave out half a line', () => {
      const { codec, replay } = join(leftAt(2), ['f a line"}', said('8'), piece, said('9')])
      expect(seen([...codec.output(replay), ...codec.replayed()])).toEqual([
        ERROR,
        INIT,
        said('8'),
        said('9'),
      ])
    })

    test('go on where it is not known how much the API replays', () => {
      const codec = codecOf({ session: leftAt(5), isNew: false, historyBytes: undefined })
      expect(codec.replay).toBe('expected')
      expect(seen(codec.output(out(...HISTORY.slice(0, 5))))).toEqual([INIT, ask('r1')])
      expect(codec.replay).toBe('none')
    })

    test('hold no more than the API keeps', () => {
      const codec = codecOf({ session: leftAt(2), isNew: false, historyBytes: 100_000_000 })
      const effects = [1, 2, 3].flatMap((at) =>
        seen(codec.output(out({ ...said(`l${at}`), x: 'x'.repeat(900_000) }))),
      )
      expect(effects.slice(0, 2)).toEqual([ERROR, INIT])
      expect(effects).toHaveLength(5)
    })

    test('have everything when no client was sent anything', () => {
      const { codec, replay } = join(sessionOf(), HISTORY)
      expect(seen([...codec.output(replay), ...codec.replayed()])).toEqual(
        HISTORY.filter((line) => line !== piece),
      )
    })
  })

  describe('at the end', () => {
    test('have the last line and the exit, then the connection is closed', () => {
      const codec = codecOf()
      codec.output({ ...out(), bytes: bytes('{"type":"result","uuid":"r"}') })
      expect(seen(codec.exit(3))).toEqual([
        { type: 'result', uuid: 'r' },
        { type: 'result', subtype: 'exit', exit_code: 3 },
        { do: 'close', code: 1000, reason: 'complete' },
      ])
      expect(send(codec, { type: 'user', message: 'hi' })).toEqual([])
    })

    test('say that the program is missing', () => {
      const codec = codecOf()
      codec.output({ ...out('exec: claude: not found'), stream: 'stderr' })
      expect(seen(codec.exit(127))).toEqual([
        { ...ERROR, message: expect.stringContaining('not installed in the sprite') as unknown },
        { type: 'result', subtype: 'exit', exit_code: 127 },
        { do: 'close', code: 4006, reason: 'agent_not_configured' },
      ])
    })

    test('report a missing login, unless a turn has succeeded before', () => {
      const line = { ...said('1'), error: 'authentication_failed' }
      expect(seen(codecOf().output(out(line)))).toEqual([
        line,
        { do: 'refuse', message: expect.stringContaining('not signed in') as unknown },
      ])
      const codec = codecOf()
      codec.output(out({ type: 'result', is_error: false, uuid: 'r' }))
      expect(seen(codec.output(out(line)))).toEqual([line])
    })

    test('say that output is missing', () => {
      expect(seen(codecOf().cut())).toEqual([ERROR])
    })
  })
})

const problem = findFakeSpritesProblem()
const START: SessionStart = {
  cmd: 'claude',
  args: [],
  env: {},
  keepSeconds: 60,
  lifetimeSeconds: 0,
  idleSeconds: 0,
}
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const newSession = (): string =>
  `${SANDBOX}.${[...crypto.getRandomValues(new Uint8Array(26))].map((byte) => ALPHABET[byte % 32]).join('')}`
/** What the fake program runs on the sprite, in place of Claude Code. */
const FAKE_CLAUDE = resolve(import.meta.dir, 'support/fake-claude.ts')
const profileOf = (command: string): string => `#!/bin/sh
cd /home/sprite/workspace && exec ${command} "$@"
`

describe.skipIf(problem !== undefined)(
  `sessions of Claude Code by the exec API${problem === undefined ? '' : ` (${problem})`}`,
  () => {
    let made: SpritesUnderTest
    /** Clock of the provider: the real one, and what a test adds. */
    let aheadMs = 0
    beforeAll(async () => {
      made = await openSpritesProvider('dev', { nowMs: () => Date.now() + aheadMs })
      await writeProfile(`${process.execPath} ${FAKE_CLAUDE}`)
      await made.provider.start({
        id: SANDBOX,
        name: 'dev',
        publicKey: 'A'.repeat(43),
        env: {},
        network: { policy: 'open', allow: [] },
        limits: DEFAULT_SANDBOX_LIMITS,
      })
    })
    afterAll(() => made[Symbol.asyncDispose]())
    beforeEach(() => {
      aheadMs = 0
    })

    const writeProfile = (command: string): Promise<Response> =>
      made.request(
        '/dev/fs/write?path=/srv/workspace-api/profiles/claude&mode=0755&mkdirParents=true',
        'PUT',
        profileOf(command),
      )
    const request = (over: Partial<SessionRequest> = {}): SessionRequest => ({
      session: newSession(),
      kind: 'claude',
      name: 'token',
      userName: 'Ada',
      authorization: { identity: 'ada' },
      authority: 'driver',
      heartbeatSeconds: 30,
      requestId: 'r-1',
      ...over,
    })
    const open = async (asked: SessionRequest, provider = made.provider): Promise<FakeClient> => {
      await provider.execSessions.open(asked)
      const client = made.clients.at(-1)
      if (client === undefined) throw new Error('No client was accepted')
      return client
    }
    const begin = async (
      over: Partial<SessionStart> = {},
    ): Promise<{ client: FakeClient; session: string }> => {
      const asked = request({ start: { ...START, ...over } })
      return { client: await open(asked), session: asked.session }
    }
    const say = (client: FakeClient, message: string): void => client.send({ type: 'user', message })
    /** What the program said, and other messages as their type. */
    const shown = ({ messages }: FakeClient): string[] =>
      messages.map((message) => {
        const { type, subtype, message: inner } = message
        const content = Object(inner)['content'] as readonly Message[] | undefined
        const [block] = content ?? []
        if (block !== undefined) return String(block['text'] ?? block['content'])
        return typeof subtype === 'string' ? `${String(type)}/${subtype}` : String(type)
      })
    const shows = (client: FakeClient, text: string) =>
      eventually(() => shown(client).includes(text), { what: text })
    const ends = (client: FakeClient) => eventually(() => client.closed, { what: 'the end' })
    /** Number of turns that a client was told of. */
    const turns = (client: FakeClient): number =>
      shown(client).filter((text) => text === 'result/success').length
    const makeFile = (name: string): void =>
      writeFileSync(join(made.api.sprite('dev').root, 'home/sprite/workspace', name), '')
    const leave = async (client: FakeClient, session: string): Promise<void> => {
      client.disconnect()
      await eventually(
        () => made.provider.execSessions.list().some((each) => each.id === session && each.attachments === 0),
        { what: 'the detach' },
      )
    }

    test('run the profile of the sprite with options that the server writes', async () => {
      const { client } = await begin({
        claude: { model: 'opus', permissionMode: 'plan', allowedTools: ['Bash(git add, git commit)', '--x'] },
        env: { GREETING: 'hi' },
      })
      say(client, 'args')
      await shows(client, 'result/success')
      const { args, env, cwd } = JSON.parse(shown(client).find((text) => text.startsWith('{')) ?? '') as {
        args: string[]
        env: Record<string, string>
        cwd: string
      }
      expect(args).toEqual([
        '--print',
        '--output-format=stream-json',
        '--verbose',
        '--input-format=stream-json',
        '--include-partial-messages',
        '--permission-prompt-tool=stdio',
        '--setting-sources=user',
        '--add-dir=.',
        '--permission-mode=plan',
        '--allowedTools=Bash(git add, git commit),--x',
        '--model=opus',
      ])
      expect(cwd).toBe('/home/sprite/workspace')
      expect(env).toMatchObject({ GREETING: 'hi', HOME: '/home/sprite' })
      expect(Object.keys(env).filter((name) => /TOKEN|KEY|SECRET/.test(name))).toEqual([])
      const line = made.logged.findLast((each) => each.includes('exec_started'))
      expect(line).toContain('"template":"claude"')
      expect(made.logged.join()).not.toContain('/exec?')
      const { path } = made.api.requests.findLast((each) => each.path.includes('/exec?')) ?? { path: '' }
      expect(new URLSearchParams(path.split('?')[1]).has('tty')).toBe(false)
      expect(made.provider.execSessions.list().at(-1)).toMatchObject({ mode: 'pipe', cmd: 'claude' })
      client.disconnect()
    })

    test('continue without their client, who gets what was written meanwhile', async () => {
      const { client, session } = await begin()
      say(client, 'say one')
      await shows(client, 'result/success')
      say(client, 'when go-1 say two')
      await eventually(() => shown(client).filter((text) => text === 'system/init').length === 2, {
        what: 'the second turn',
      })
      await leave(client, session)
      makeFile('go-1')
      const again = await open(request({ session }))
      await eventually(() => turns(again) === 1, { what: 'the end of the turn' })
      expect(again.messages[0]).toMatchObject({ subtype: 'connected', resumed: true, session_id: 'token' })
      expect(shown(again)).toEqual(['system/connected', 'system/init', 'two', 'result/success'])
      say(again, 'say three')
      await shows(again, 'three')
      again.disconnect()
    })

    test('are continued by another instance of the object, with their settings', async () => {
      const { client, session } = await begin()
      client.send({ type: 'control', subtype: 'set_model', model: 'haiku' })
      say(client, 'ask Bash')
      await shows(client, 'control_request')
      made.api.sprite('dev').disconnectAll()
      expect(await ends(client)).toEqual({ code: 4006, reason: 'sandbox_unreachable' })
      const again = await open(request({ session }), made.reopen())
      await shows(again, 'control_request')
      expect(again.messages[0]).toMatchObject({ resumed: true, settings: { model: 'haiku' } })
      expect(shown(again)).toEqual(['system/connected', 'system/init', 'control_request'])
      again.send({
        type: 'control_response',
        request_id: again.first('control_request')?.['request_id'],
        decision: 'allow',
      })
      await shows(again, '{"behavior":"allow","updatedInput":{"command":"ls"}}')
      again.disconnect()
    })

    test('say what is missing when more was written than the API keeps', async () => {
      const { client, session } = await begin()
      say(client, 'say one')
      await shows(client, 'result/success')
      say(client, 'when go-2 fill 2000000')
      await leave(client, session)
      makeFile('go-2')
      // The last line is written when the file has been; a second client sees it.
      const watcher = await open(request({ session }))
      await eventually(() => turns(watcher) > 0, { what: 'the end of the turn' })
      watcher.disconnect()
      made.execs.setState(
        session,
        ClaudeSession.begin({}).replace('"mark":null', '"mark":{"id":"gone","count":1}'),
      )
      const again = await open(request({ session }), made.reopen())
      await eventually(() => turns(again) > 0, { what: 'the replay' })
      expect(shown(again).slice(0, 2)).toEqual(['system/connected', 'system/error'])
      expect(shown(again)).not.toContain('raw')
      expect(again.closed).toBeUndefined()
      again.disconnect()
    })

    test('are shared: a request that one client answers is withdrawn from the others', async () => {
      const { client, session } = await begin()
      const other = await open(request({ session }))
      say(other, 'ask Edit')
      await Promise.all([client, other].map((each) => shows(each, 'control_request')))
      const request_id = client.first('control_request')?.['request_id']
      client.send({ type: 'control_response', request_id, decision: 'deny', message: 'no' })
      await shows(other, 'control_cancel_request')
      await Promise.all([client, other].map((each) => shows(each, 'result/success')))
      expect(shown(client)).not.toContain('control_cancel_request')
      other.send({ type: 'control_response', request_id, decision: 'allow' })
      await shows(other, 'system/error')
      for (const each of [client, other]) each.disconnect()
    })

    test('are not found as terminals, nor terminals as sessions of Claude Code', async () => {
      const { client, session } = await begin()
      const terminal = request({ kind: 'pty', start: { ...START, cmd: 'cat' } })
      const shell = await open(terminal)
      for (const asked of [
        request({ session, kind: 'pty' }),
        request({ session: terminal.session, kind: 'claude' }),
        request(),
      ])
        expect(await rejectionOf(made.provider.execSessions.open(asked))).toMatchObject({
          code: 'session_not_found',
        })
      for (const each of [client, shell]) each.disconnect()
      await made.provider.execSessions.end(terminal.session)
    })

    test('let viewers watch only', async () => {
      const { client, session } = await begin()
      const viewer = await open(request({ session, authority: 'viewer', authorization: { identity: 'bob' } }))
      say(viewer, 'say intrusion')
      await shows(viewer, 'system/error')
      say(client, 'say done')
      await shows(viewer, 'done')
      expect(shown(viewer)).not.toContain('intrusion')
      for (const each of [client, viewer]) each.disconnect()
    })

    test('close a client that gets more than may wait for it, or whose access was revoked, and continue', async () => {
      const { client, session } = await begin()
      say(client, 'fill 20000000')
      expect(await ends(client)).toEqual({ code: 4005, reason: 'rate_limited' })
      const again = await open(request({ session, authorization: { identity: 'bob', grant: 'g1' } }))
      say(again, 'say more')
      await shows(again, 'more')
      made.provider.execSessions.disconnect({ grant: 'g1' })
      expect(again.closed).toEqual({ code: 4008, reason: 'revoked' })
      expect(again.messages.at(-1)).toMatchObject({ type: 'system', subtype: 'error' })
      const last = await open(request({ session }))
      say(last, 'say still here')
      await shows(last, 'still here')
      last.disconnect()
    })

    test('end some time after their last client, and are missing then', async () => {
      const { client, session } = await begin({ keepSeconds: 60 })
      await leave(client, session)
      await made.provider.execSessions.collect()
      expect(made.provider.execSessions.has(session)).toBe(true)
      aheadMs = 61_000
      await made.provider.execSessions.collect()
      expect(await rejectionOf(made.provider.execSessions.open(request({ session })))).toMatchObject({
        code: 'session_not_found',
      })
    })

    test('report the exit and close', async () => {
      const { client, session } = await begin()
      say(client, 'exit 7')
      expect(await ends(client)).toEqual({ code: 1000, reason: 'complete' })
      expect(client.messages.at(-1)).toEqual({ type: 'result', subtype: 'exit', exit_code: 7 })
      expect(await rejectionOf(made.provider.execSessions.open(request({ session })))).toMatchObject({
        code: 'session_not_found',
      })
    })

    test('pass on long lines whole, and say when one is too long', async () => {
      const { client } = await begin()
      say(client, 'line 3000000')
      await shows(client, 'x'.repeat(3_000_000))
      say(client, 'line 5000000')
      await eventually(() => turns(client) === 2, { what: 'the second turn' })
      expect(shown(client).slice(-3)).toEqual(['system/init', 'system/error', 'result/success'])
      client.disconnect()
    })

    test('give each line to exactly one of the clients that come one after the other through broken connections', async () => {
      const { client, session } = await begin()
      say(client, 'count 2000')
      const clients = [client]
      let { provider } = made
      const all = (): string[] => clients.flatMap(shown)
      for (let last = client; !all().includes('number 1999');) {
        const seen = last.messages.length
        await eventually(() => last.messages.length > seen + 20 || all().includes('number 1999'), {
          what: 'more lines',
          intervalMs: 1,
        })
        made.api.sprite('dev').disconnectAll()
        await ends(last)
        // Every other time a new instance of the object continues.
        if (clients.length % 2 === 0) provider = made.reopen()
        last = await open(request({ session }), provider)
        clients.push(last)
      }
      expect(clients.length).toBeGreaterThan(3)
      const numbers = Array.from({ length: 2000 }, (_, number) => `number ${number}`)
      expect(all().filter((text) => text.startsWith('number'))).toEqual(numbers)
      expect(JSON.stringify(clients.map(({ messages }) => messages))).not.toContain('may be missing')
      clients.at(-1)?.disconnect()
    })

    test('survive a sprite that freezes', async () => {
      const { client, session } = await begin()
      say(client, 'say before')
      await shows(client, 'result/success')
      made.api.sprite('dev').freeze()
      await ends(client)
      const thawed = await open(request({ session }))
      say(thawed, 'say after')
      await shows(thawed, 'after')
      expect(shown(thawed)).not.toContain('before')
      thawed.disconnect()
    })

    test.each([
      ['no login', 'env FAKE_LOGIN=none', undefined],
      ['the login is refused', '', 'unauthorized'],
    ])('say that %s, and end the program', async (_, prefix, message) => {
      await writeProfile(`${prefix} ${process.execPath} ${FAKE_CLAUDE}`)
      const { client, session } = await begin()
      if (message !== undefined) say(client, message)
      expect(await ends(client)).toEqual({ code: 4006, reason: 'agent_not_configured' })
      expect(client.messages.at(-1)).toMatchObject({
        subtype: 'error',
        message: expect.stringContaining('not signed in') as unknown,
      })
      await eventually(() => !made.provider.execSessions.has(session), { what: 'the end of the program' })
    })

    test.each([
      ['is not installed', 'no-such-program'],
      ['has no profile', undefined],
    ])('say that the program %s', async (_, command) => {
      if (command !== undefined) await writeProfile(command)
      else await made.request('/dev/fs/delete?path=/srv/workspace-api/profiles/claude', 'DELETE')
      const { client } = await begin()
      expect(await ends(client)).toEqual({ code: 4006, reason: 'agent_not_configured' })
      expect(shown(client).slice(-2)).toEqual(['system/error', 'result/exit'])
      await writeProfile(`${process.execPath} ${FAKE_CLAUDE}`)
    })

    test('say that the API kept only a part of what a program wrote that ended at once', async () => {
      await writeProfile('head -c 200000 /dev/zero; :')
      made.api.behavior.hasFastPath = true
      const { client } = await begin()
      expect((await ends(client)).code).toBe(1000)
      expect(shown(client).slice(0, 2)).toEqual(['system/connected', 'system/error'])
      made.api.behavior.hasFastPath = false
      await writeProfile(`${process.execPath} ${FAKE_CLAUDE}`)
    })
  },
)
