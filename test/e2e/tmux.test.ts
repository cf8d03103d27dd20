import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { runInProcess } from '../../apps/cli/test/in-process.ts'
import { type RunningHost, startHost } from './support/control.ts'
import { openTerminal } from './support/terminal.ts'

/** A cold start on a busy machine. */
const TIMEOUT_MS = 180_000
const CLI = new URL('../../apps/cli/src/main.ts', import.meta.url).pathname

describe.skipIf(Bun.which('tmux') === null)('tmux in a sandbox', () => {
  let host: RunningHost

  beforeAll(async () => {
    host = await startHost()
    expect((await cli('create', 'dev')).code).toBe(0)
  }, TIMEOUT_MS)

  afterAll(async () => {
    await host.stop()
  }, TIMEOUT_MS)

  function cli(...argv: string[]) {
    return runInProcess([...argv, '--url', host.url], {
      env: { SBX_TOKEN: host.token, npm_command: undefined },
    })
  }

  /** The CLI in a real terminal. */
  function open(...argv: string[]) {
    return openTerminal({
      argv: [process.execPath, CLI, ...argv] as [string, ...string[]],
      env: { SBX_TOKEN: host.token },
      cols: 100,
      rows: 30,
    })
  }

  async function view(): Promise<{ state: string; windows?: { panes: { id: string }[] }[] }> {
    return (await (await host.fetch('/api/sandboxes/dev/tmux')).json()) as { state: string }
  }

  test(
    'shows one pane to the CLI, to a tmux client inside and to a plain client at once',
    async () => {
      expect((await cli('tmux', 'dev', 'list')).stderr).toContain('does not run')
      const first = (await cli('tmux', 'dev', 'new', 'work')).stdout.toString().trim()
      expect(first).toMatch(/^%\d+$/)
      const second = (await cli('tmux', 'dev', 'split', first)).stdout.toString().trim()
      expect((await cli('tmux', 'dev', 'list')).stdout.toString()).toContain(second)

      const pane = open('tmux', 'dev', 'show', second, '--url', host.url)
      await pane.waitFor('$ ')
      pane.send('echo from-$((40+2))\r')
      await pane.waitFor('from-42')

      const inside = open('tmux', 'dev', '--url', host.url)
      await inside.waitFor('from-42')
      inside.send('echo inside-$((1+1))\r')
      await pane.waitFor('inside-2')

      // Bun accepts headers here; the DOM types do not.
      const options: unknown = { headers: { authorization: `Bearer ${host.token}` } }
      const url = `${host.url.replace('http', 'ws')}/attach?sandbox=dev&pane=${encodeURIComponent(first)}`
      const plain = new WebSocket(url, options as string[])
      await new Promise((resolve) => plain.addEventListener('open', resolve))
      plain.send(JSON.stringify({ type: 'stdin', pane: 'right', data: 'echo plain-$((2+3))\r' }))
      await pane.waitFor('plain-5')
      const warning = Promise.withResolvers<string>()
      plain.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
        if (typeof data === 'string') warning.resolve(data)
      })
      plain.send(JSON.stringify({ type: 'stdin', pane: 'up', data: 'x' }))
      expect(await warning.promise).toContain('no pane')
      plain.close()

      expect((await cli('tmux', 'dev', 'kill', first)).code).toBe(0)
      await eventually(async () => (await view()).windows?.[0]?.panes.length === 1, { what: 'one pane' })
      expect((await cli('tmux', 'dev', 'kill')).code).toBe(0)
      expect(await pane.exit).toMatchObject({ code: 129 })
      await inside.exit
      expect(await view()).toEqual({ state: 'stopped' })
    },
    TIMEOUT_MS,
  )

  test('opens a pane of a server that was started inside', async () => {
    const post = (path: string, body: object) =>
      host.fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const command = { cmd: 'sh', args: ['-c', 'tmux kill-server; sleep 1; tmux new-session -d'] }
    expect((await post('/api/sandboxes/dev/exec', command)).status).toBe(200)
    expect((await post('/api/sandboxes/dev/sessions', { pane: '%0' })).status).toBe(201)
    expect((await cli('tmux', 'dev', 'kill')).code).toBe(0)
  })

  test('refuses panes that are not there, and actions that are not known', async () => {
    expect((await cli('tmux', 'dev', 'new')).code).toBe(0)
    const post = async (path: string, body: object): Promise<string> => {
      const headers = { 'content-type': 'application/json' }
      const response = await host.fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
      const { error } = (await response.json()) as { error?: { code: string } }
      return `${response.status} ${error?.code ?? ''}`
    }
    expect(await post('/api/sandboxes/dev/tmux', { type: 'run', command: 'x' })).toBe('400 bad_request')
    expect(await post('/api/sandboxes/dev/tmux', { type: 'kill_pane', pane: '%999' })).toBe('400 bad_request')
    expect(await post('/api/sandboxes/dev/tmux', { type: 'new_window', name: 'a\nkill-server' })).toBe(
      '400 bad_request',
    )
    expect(await post('/api/sandboxes/dev/sessions', { pane: '%999' })).toBe('404 session_not_found')
    expect(await post('/api/sandboxes/dev/sessions', { pane: '%0', cmd: 'sh' })).toBe('400 bad_request')
    expect((await view()).state).toBe('running')
  })
})
