import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { eventually, PtyClient } from '@sandwire/testing'
import { findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import { openSessionTokens, type SessionTokens } from '../../apps/control/src/auth/session-token.ts'
import { type RunningHost, startHost } from './support/control.ts'
import { CLAUDE_PROFILE, openSpritesServer, type SpritesServer } from './support/sprites-server.ts'

const problem = findFakeSpritesProblem()
const FAKE_CLAUDE = resolve(import.meta.dir, '../../apps/control/test/support/fake-claude.ts')
const KEY = new Uint8Array(32).fill(7)
const NOT_FOUND = { code: 4001, reason: 'session_not_found' }

describe.skipIf(problem !== undefined)(
  `/ws/claude-stream of a host with sprites${problem === undefined ? '' : ` (${problem})`}`,
  () => {
    let sprites: SpritesServer
    let host: RunningHost
    let tokens: SessionTokens
    /** Account of the caller. */
    let user: string

    beforeAll(async () => {
      sprites = await openSpritesServer()
      await sprites.write(CLAUDE_PROFILE, `#!/bin/sh\nexec ${process.execPath} ${FAKE_CLAUDE} "$@"\n`)
      const secret = `k1:${Buffer.from(KEY).toString('base64')}`
      host = await startHost({
        env: { ...sprites.env, WORKSPACE_MODE: 'sandbox', SESSION_TOKEN_SECRET: secret },
      })
      tokens = await tokensOf('sprites')
      const { account } = (await (await host.fetch('/api/whoami')).json()) as { account: string }
      user = account
    })
    afterAll(async () => {
      await host?.stop()
      await sprites?.[Symbol.asyncDispose]()
    })

    const tokensOf = (provider: string, key = KEY): Promise<SessionTokens> =>
      openSessionTokens([{ kid: 'k1', bytes: key }], {
        provider,
        lifeMs: 3_600_000,
        random: (bytes) => crypto.getRandomValues(bytes),
      })
    const open = (path: string, query: Readonly<Record<string, string>> = {}): PtyClient =>
      new PtyClient(host, `${path}?${new URLSearchParams(query)}`)
    const openClaude = (query: Readonly<Record<string, string>> = {}) => open('/ws/claude-stream', query)
    const nameOf = async (client: PtyClient): Promise<string> =>
      String((await eventually(() => client.messages[0], { what: 'the first message' }))['session_id'])
    const says = (client: PtyClient, text: string) =>
      eventually(() => JSON.stringify(client.messages).includes(`"text":"${text}"`), { what: text })
    const say = async (client: PtyClient, text: string): Promise<void> => {
      client.send({ type: 'user', message: `say ${text}` })
      await says(client, text)
    }
    const refusal = async (client: PtyClient): Promise<unknown> => {
      await using refused = client
      return await refused.closed()
    }

    test('detaches and resumes by an opaque name, which each connection renews', async () => {
      const first = openClaude({ mode: 'act', model: 'opus' })
      const name = await nameOf(first)
      expect(name).toMatch(/^swt1\.k1\./)
      expect(first.messages[0]).toMatchObject({ resumed: false, settings: { model: 'opus' } })
      await say(first, 'one')
      await first.disconnect()
      await using again = openClaude({ session_id: name, resume: '1' })
      const renewed = await nameOf(again)
      expect(again.messages[0]).toMatchObject({ resumed: true, settings: { model: 'opus' } })
      expect(renewed).toMatch(/^swt1\.k1\./)
      expect(renewed).not.toBe(name)
      await say(again, 'two')
      expect(JSON.stringify(again.messages)).not.toContain('"text":"one"')
      const { sessions } = (await (await host.fetch('/api/sessions')).json()) as { sessions: object[] }
      expect(sessions).toMatchObject([{ type: 'stream', alive: true, clients: 1 }])
    })

    test('finds no session by an invalid name, and none of another kind', async () => {
      await using client = openClaude()
      const name = await nameOf(client)
      await say(client, 'ready')
      const session = (await tokens.read(name, user, Date.now())) ?? ''
      await using shell = open('/ws/pty')
      const terminal = (await tokens.read(await shell.name(), user, Date.now())) ?? ''
      const now = Date.now()
      const claude = { session, kind: 'claude', user } as const
      const other = await tokensOf('host')
      const forged = await tokensOf('sprites', new Uint8Array(32).fill(8))
      const elsewhere = { ...claude, session: session.replace(/^.*\./, `${'0'.repeat(32)}.`) }
      const invalid: Readonly<Record<string, string>> = {
        changed: `${name.slice(0, -4)}AAAA`,
        'signed with another key': await forged.mint(claude, now),
        expired: await tokens.mint(claude, now - 3_600_001),
        'of another account': await tokens.mint({ ...claude, user: 'mallory' }, now),
        'of another provider': await other.mint(claude, now),
        'of another sandbox': await tokens.mint(elsewhere, now),
        'of a terminal': await shell.name(),
        'of a terminal, by its kind only': await tokens.mint({ ...claude, kind: 'pty' }, now),
        'of a terminal, under the other kind': await tokens.mint({ ...claude, session: terminal }, now),
        'id of a terminal': terminal,
        unknown: session.replace(/\..*$/, `.${'0'.repeat(26)}`),
      }
      for (const [what, session_id] of Object.entries(invalid)) {
        const refused = openClaude({ session_id, resume: '1' })
        expect([what, await refusal(refused)]).toEqual([what, NOT_FOUND])
        expect(refused.messages).toMatchObject([{ type: 'system', subtype: 'session_not_found' }])
      }
      for (const session_id of [name, session, await tokens.mint({ ...claude, kind: 'pty' }, now)])
        expect(await refusal(open('/ws/pty', { session_id, resume: '1' }))).toEqual(NOT_FOUND)
      const attached = await host.fetch(`/attach?session=${encodeURIComponent(name)}`)
      expect(attached.status).toBe(404)
      // The valid ones, so that the others were refused for what is wrong with them.
      await using valid = openClaude({ session_id: await tokens.mint(claude, now), resume: '1' })
      expect(await nameOf(valid)).toMatch(/^swt1\./)
      for (const query of [{ session_id: session, resume: '1' }, { session_id: session }]) {
        await using byId = openClaude(query)
        expect(await nameOf(byId)).toMatch(/^swt1\./)
        expect(byId.messages[0]).toMatchObject({ resumed: true })
      }
    })

    test('is started by those who may run commands, and only watched by viewers', async () => {
      const withTicket = async (body: object, query: Readonly<Record<string, string>> = {}) => {
        const headers = { 'content-type': 'application/json' }
        const init = { method: 'POST', headers, body: JSON.stringify(body) }
        const { ticket } = (await (await host.fetch('/api/tickets', init)).json()) as { ticket: string }
        const anonymous = { port: host.port, headers: {} }
        const offers = ['sandwire.envelope', `sandwire.ticket.${ticket}`]
        return new PtyClient(anonymous, `/ws/claude-stream?${new URLSearchParams(query)}`, offers)
      }
      const sandbox = 'default'
      expect(await refusal(await withTicket({ sandbox, role: 'viewer' }))).toMatchObject({ code: 4008 })
      await using client = openClaude()
      const session = await nameOf(client)
      await using viewer = await withTicket({ session, role: 'viewer' }, { session_id: session, resume: '1' })
      await nameOf(viewer)
      viewer.send({ type: 'user', message: 'say intrusion' })
      await eventually(() => viewer.messages.some(({ subtype }) => subtype === 'error'), {
        what: 'the refusal',
      })
      await say(client, 'shown')
      await says(viewer, 'shown')
      expect(JSON.stringify(client.messages)).not.toContain('intrusion')
      await using driver = await withTicket({ sandbox, role: 'driver' })
      await nameOf(driver)
      await say(driver, 'allowed')
    })

    test('takes no command of a client', async () => {
      const before = sprites.api.requests.length
      for (const query of [
        { cmd: 'id' },
        { provider: 'shell' },
        { model: '--dangerously-skip-permissions x' },
        { mode: 'bypassPermissions' },
        { allowed_tools: 'a\nb' },
      ])
        expect((await refusal(openClaude(query))) as object).toMatchObject({ code: 4004 })
      expect(sprites.api.requests.slice(before).filter(({ path }) => path.includes('/exec?'))).toEqual([])
    })

    test('is what a sprite has in place of runs, which are refused with the reason', async () => {
      const response = await host.fetch('/api/runs', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ repo: 'https://github.com/owner/name', task: 'x' }),
      })
      expect(response.status).toBe(503)
      expect(await response.text()).toContain('sprites cannot reach the gateway')
    })

    test('is among the capabilities, and has no secret of the server in argv, URL, environment or log', async () => {
      const features: unknown = await (await host.fetch('/api/capabilities')).json()
      expect(features).toMatchObject({ features: { chat_claude_code: true, stream: true } })
      await using client = openClaude()
      await nameOf(client)
      client.send({ type: 'user', message: 'args' })
      await eventually(() => client.messages.some(({ type }) => type === 'result'), {
        what: 'the end',
      })
      const shown = JSON.stringify(client.messages)
      expect(shown).toContain('--permission-prompt-tool=stdio')
      const secrets = [sprites.api.token, host.token, Buffer.from(KEY).toString('base64')]
      const urls = sprites.api.requests.map(({ path }) => path).join()
      const log = await readFile(join(host.data, 'host.log'), 'utf8')
      for (const secret of secrets)
        for (const text of [shown, urls, log, host.output()]) expect(text).not.toContain(secret)
      expect(`${log}${host.output()}`).not.toContain('max_run_after_disconnect')
    })
  },
)
