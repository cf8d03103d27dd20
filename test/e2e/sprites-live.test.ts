import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import path from 'node:path'
import { eventually, PtyClient } from '@sandwire/testing'
import { runShell } from './support/attached.ts'
import { type RunningHost, startHost } from './support/control.ts'

const SCRIPTS = path.resolve(import.meta.dir, '../../deploy/sandbox')
/** A cold sprite wakes, and the program of 100 MB is uploaded if it changed. */
const DEPLOY_MS = 600_000

/** A sprite that these tests may use; named by a variable of its own, because the server's would apply to the other tests too. */
const sprite = process.env['SANDWIRE_TEST_SPRITE']
const hasToken =
  process.env['SPRITES_API_TOKEN'] !== undefined || process.env['SPRITES_API_TOKEN_FILE'] !== undefined
const problem =
  sprite === undefined || !hasToken
    ? 'no credentials: set SANDWIRE_TEST_SPRITE to the name of a sprite, and SPRITES_API_TOKEN'
    : undefined

describe.skipIf(problem !== undefined)(
  `the service of Fly Sprites${problem === undefined ? '' : ` (${problem})`}`,
  () => {
    const env = { SPRITES_SPRITE_NAME: sprite ?? '', WORKSPACE_MODE: 'sandbox' }
    const folder = `sandwire-test-${crypto.randomUUID()}`
    let host: RunningHost | undefined

    const runScript = async (script: string): Promise<string> => {
      const child = Bun.spawn([path.join(SCRIPTS, script)], {
        env: { ...process.env, ...env },
        stdout: 'pipe',
        stderr: 'pipe',
      })
      const [out, errors] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ])
      if ((await child.exited) !== 0) throw new Error(`${script} failed: ${errors}`)
      return out
    }
    const server = (): RunningHost => {
      if (host === undefined) throw new Error('The host did not start')
      return host
    }
    const wire = () => ({
      ...server(),
      sandbox: 'default',
      socketUrl: (url: string) => `${server().url}${url}`,
    })
    const openTerminal = (session?: string): PtyClient => {
      const query = { provider: 'shell', ...(session !== undefined && { session_id: session, resume: '1' }) }
      return new PtyClient(server(), `/ws/pty?${new URLSearchParams(query).toString()}`)
    }

    beforeAll(async () => {
      await runScript('deploy_workspace_service.sh')
      host = await startHost({ env })
    }, DEPLOY_MS)
    afterAll(async () => {
      if (host === undefined) return
      await host.fetch(`/api/file?path=${folder}`, { method: 'DELETE' })
      await host.fetch('/api/sandboxes/default', { method: 'DELETE' })
      await host.stop()
    }, DEPLOY_MS)

    test(
      'writes, lists and reads files',
      async () => {
        const file = `/api/file?path=${folder}/a.txt`
        const written = await server().fetch(file, {
          method: 'PUT',
          body: JSON.stringify({ content: 'one' }),
          headers: { 'content-type': 'application/json' },
        })
        expect(written.status).toBe(200)
        expect(await (await server().fetch(file)).json()).toMatchObject({ content: 'one' })
        const listed: unknown = await (await server().fetch(`/api/tree?path=${folder}`)).json()
        expect(listed).toMatchObject({ entries: [{ name: 'a.txt', is_dir: false, size: 3 }] })
      },
      DEPLOY_MS,
    )

    test(
      'passes the smoke check of the scripts',
      async () => {
        expect(await runScript('smoke_check.sh')).toContain('health     ')
      },
      DEPLOY_MS,
    )

    test(
      'streams exactly, with the exit code of the process',
      async () => {
        await using client = runShell(wire(), 'cat; exit 7')
        const lines = Array.from({ length: 2_000 }, (_, line) => `line ${line}\n`).join('')
        await client.send(lines)
        client.handle.eof()
        expect(await client.exit).toMatchObject({ code: 7 })
        expect(client.text).toBe(lines)
      },
      DEPLOY_MS,
    )

    test(
      'finds a terminal of the exec API again',
      async () => {
        const first = openTerminal()
        await eventually(() => first.messages.some(({ type }) => type === 'session'), { what: 'it' })
        const session = await first.name()
        first.type('mark=the""same; echo mar""ked\n')
        await eventually(() => first.text('output').includes('marked'), { what: 'the output' })
        await first.disconnect()
        const second = openTerminal(session)
        await eventually(() => second.messages.length > 0, { what: 'an answer' })
        second.type('echo "$mark shell"; exit 3\n')
        await eventually(() => second.messages.some(({ type }) => type === 'exit'), {
          what: 'the exit',
        })
        expect(second.text('output')).toContain('thesame shell')
        expect(await second.first('exit')).toMatchObject({ code: 3 })
        await second.disconnect()
      },
      DEPLOY_MS,
    )

    test(
      'starts Claude Code, or says why it cannot',
      async () => {
        const client = new PtyClient(server(), '/ws/claude-stream')
        await eventually(() => client.messages.some(({ subtype }) => subtype === 'connected'), {
          what: 'it',
        })
        // The program answers a change of a setting, unless it is not installed or has no login.
        client.send({ type: 'control', subtype: 'set_permission_mode', mode: 'plan' })
        const isAnswered = (): boolean => client.messages.some(({ type }) => type === 'control_response')
        await eventually(() => isAnswered() || client.close !== undefined, { what: 'an answer' })
        if (!isAnswered()) expect(client.close).toEqual({ code: 4006, reason: 'agent_not_configured' })
        await client.disconnect()
      },
      DEPLOY_MS,
    )

    test(
      'reports that it is ready, without the token',
      async () => {
        const ready = await server().fetch('/readyz')
        expect(ready.status).toBe(200)
        const token = process.env['SPRITES_API_TOKEN']
        if (token !== undefined) expect(`${await ready.text()}${server().output()}`).not.toContain(token)
      },
      DEPLOY_MS,
    )
  },
)
