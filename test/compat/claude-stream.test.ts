import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eventually, PtyClient, type PtyMessage } from '@sandwire/testing'
import {
  callTool,
  type FakeAnthropic,
  openFakeAnthropic,
  say,
  type Script,
} from '@sandwire/testing/fake-anthropic'
import { findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { findClaude } from '../e2e/support/agents/real-agents.ts'
import { type RunningHost, startHost } from '../e2e/support/control.ts'
import { openSpritesServer, type SpritesServer } from '../e2e/support/sprites-server.ts'
import { CLAUDE_CONVERSATIONS, type ClaudeMode, type ClaudeStep } from './claude-goldens.ts'
import { isGolden } from './template.ts'

setDefaultTimeout(180_000)

const claude = await findClaude()
if (claude.problem !== undefined) console.error(`/ws/claude-stream: skipped, ${claude.problem}`)

/** On the disk of the installed program, so that it can be linked. */
const CACHE = resolve(import.meta.dir, '../../.cache')
const CANARY = 'sk-ant-canary-0123456789abcdef'
const WAIT = { timeoutMs: 60_000, intervalMs: 20 }

const WORDS = ['one', 'two', 'three', 'run', 'again', 'remember', 'look', 'read', 'long']

/** Repeats the last message, or does what it says. */
const SCRIPT: Script = ({ isSide, userTexts, toolResults, body }) => {
  if (isSide) return say('Title')
  const asked = userTexts.filter((text) => WORDS.includes(text))
  switch (asked.at(-1)) {
    case 'run':
    case 'again':
      return toolResults === asked.length - 1
        ? callTool('Bash', { command: 'echo ran > ran.txt; cat ran.txt' })
        : say('Done')
    case 'remember':
      return say(asked.join(', '))
    case 'look':
      return say(JSON.stringify(body).includes('image/png') ? 'image/png' : 'nothing')
    case 'read':
      return say(userTexts.find((text) => text.startsWith('@')) ?? 'nothing')
    case 'long':
      return say('a long answer '.repeat(200), { delayMs: 50 })
    default:
      return say(asked.at(-1) ?? '')
  }
}

/** Lines of the program that say nothing about the conversation, or come at any time. */
const LEFT_OUT =
  /^(stream_event|command_lifecycle|rate_limit_event|system\/(?!init|connected|error|session_not_found|echo))/

interface Block {
  readonly type: string
  readonly text?: string
  readonly name?: string
  readonly content?: unknown
}

/** Our own messages as they are; a line of the program as its type and what is in it. */
function shorten(message: PtyMessage): string {
  const { type } = message
  const inner = Object(message['request'] ?? message['response']) as Readonly<Record<string, unknown>>
  const subtype = message['subtype'] ?? inner['subtype']
  const kind = typeof subtype === 'string' ? `${type}/${subtype}` : type
  if (type === 'assistant' || type === 'user') {
    const { content } = message['message'] as { readonly content: readonly Block[] }
    const shown = content.map((block) => block.text ?? block.name ?? String(block.content))
    return `${kind}: ${shown.join(' ')}`
  }
  const isOurs = /^(system\/(connected|error|session_not_found|echo)|result\/exit|pong|raw)$/.test(kind)
  return isOurs ? JSON.stringify(message) : kind
}

const shown = (client: PtyClient): string[] =>
  client.messages.map(shorten).filter((text) => !LEFT_OUT.test(text))

/** Forwards a port of the sprite, whose network is its own, to a socket in the file system. */
const FORWARD = `
import { connect, createServer } from 'node:net'
const [path, port] = process.argv.slice(-2)
createServer((socket) => {
  const upstream = connect(path)
  for (const each of [socket, upstream]) each.on('error', () => { socket.destroy(); upstream.destroy() })
  socket.pipe(upstream).pipe(socket)
}).listen(Number(port), '127.0.0.1', () => console.log('ready'))
`

/** A host whose sandbox is a sprite, with Claude Code and a key of its owner for the scripted model. */
async function startWithSprite(
  program: string,
  api: FakeAnthropic,
  folder: string,
): Promise<{
  readonly host: RunningHost
  readonly sprites: SpritesServer
  readonly stop: () => Promise<void>
}> {
  const sprites = await openSpritesServer()
  const { port } = new URL(api.url)
  const socket = join(folder, 'model.sock')
  const outside = createServer((inner) => {
    const upstream = connect(Number(port), '127.0.0.1')
    for (const each of [inner, upstream])
      each.on('error', () => {
        inner.destroy()
        upstream.destroy()
      })
    inner.pipe(upstream).pipe(inner)
  }).listen(socket)
  const inside = Bun.spawn(
    sprites.api.sprite('dev').commandOf([process.execPath, '-e', FORWARD, socket, port], {}),
    { stdout: 'pipe', stderr: 'inherit' },
  )
  for await (const _ of inside.stdout) break
  await sprites.write('/home/sprite/.local/bin/claude', `#!/bin/sh\nexec '${program}' "$@"\n`)
  const settings = {
    ANTHROPIC_API_KEY: CANARY,
    ANTHROPIC_BASE_URL: api.url,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  await sprites.write('/home/sprite/.auth/claude.env', lines.join(''))
  const host = await startHost({ env: { ...sprites.env, WORKSPACE_MODE: 'sandbox' } })
  return {
    host,
    sprites,
    stop: async () => {
      await host.stop()
      inside.kill()
      outside.close()
      await sprites[Symbol.asyncDispose]()
    },
  }
}

const withoutSprites = findFakeSpritesProblem()
if (withoutSprites !== undefined) console.error(`/ws/claude-stream in sprites: skipped, ${withoutSprites}`)
const MODES: readonly ClaudeMode[] = [
  'local',
  'sandbox',
  ...(withoutSprites === undefined ? (['sprites'] as const) : []),
]

describe.skipIf(claude.problem !== undefined).each([...MODES])('/ws/claude-stream with %s', (mode) => {
  let api: FakeAnthropic
  let host: RunningHost
  let data: string
  let workspace: string
  let sprites: Awaited<ReturnType<typeof startWithSprite>> | undefined

  beforeAll(async () => {
    data = mkdtempSync(join(CACHE, 'claude-stream-'))
    workspace = mkdtempSync('/tmp/claude-stream-')
    mkdirSync(join(data, 'agents'))
    if (claude.problem !== undefined) return
    api = await openFakeAnthropic({ script: SCRIPT, key: CANARY })
    if (mode === 'sprites') {
      sprites = await startWithSprite(claude.program, api, workspace)
      host = sprites.host
      return
    }
    Bun.spawnSync(['cp', '-al', `${claude.folder}/.`, join(data, 'agents')])
    host = await startHost({
      data,
      ...(mode === 'local' ? { prefix: ['env', '-C', workspace] } : {}),
      env: { WORKSPACE_MODE: mode, ANTHROPIC_API_KEY: CANARY, ANTHROPIC_BASE_URL: api.url },
    })
  })
  afterAll(async () => {
    await (sprites ?? host).stop()
    await api[Symbol.asyncDispose]()
    for (const each of [data, workspace]) rmSync(each, { recursive: true, force: true })
  })

  async function endProgram(): Promise<void> {
    if (sprites !== undefined)
      return [...sprites.sprites.api.sprite('dev').sessions.values()].at(-1)?.signal('SIGTERM')
    const { runs } = (await (await host.fetch('/api/runs')).json()) as { runs: readonly { id: string }[] }
    const headers = { 'content-type': 'application/json' }
    await host.fetch(`/api/runs/${runs[0]?.id}/abort`, { method: 'POST', headers, body: '{}' })
  }

  async function run(steps: readonly ClaudeStep[]): Promise<void> {
    const open = new Map<string, { readonly client: PtyClient; received: number }>()
    const get = (name: string) => {
      const found = open.get(name)
      if (found === undefined) throw new Error(`Nothing is open as "${name}"`)
      return found
    }
    const sessionOf = async (name: string): Promise<string> => {
      const message = await eventually(() => get(name).client.messages[0], { what: 'connected', ...WAIT })
      return String(message['session_id'])
    }
    const perform = async (step: ClaudeStep): Promise<void> => {
      if (step === 'end the program') return endProgram()
      if ('open' in step) {
        const query = new URLSearchParams()
        for (const [name, value] of Object.entries(step.query ?? {}))
          query.append(name, value.startsWith('$') ? await sessionOf(value.slice(1)) : value)
        const client = new PtyClient(host, `/ws/claude-stream?${query}`)
        open.set(step.open, { client, received: 0 })
      } else if ('send' in step) {
        const { client } = get(step.to)
        const request = client.messages.findLast(({ type }) => type === 'control_request')?.['request_id']
        client.send(
          typeof step.send === 'string'
            ? step.send
            : JSON.stringify(step.send).replace('$REQUEST', String(request)),
        )
      } else if ('receive' in step) {
        const from = get(step.from)
        const since = (): string[] => shown(from.client).slice(from.received)
        const { receive } = step
        await eventually(() => since().length >= receive.length, { what: receive.join(), ...WAIT }).catch(
          () => undefined,
        )
        const got = since()
        // Compared as a whole, so that a difference is shown side by side.
        expect(got.map((text, at) => (isGolden(text, receive[at] ?? '') ? receive[at] : text))).toEqual([
          ...receive,
        ])
        from.received += got.length
      } else if ('close' in step) expect(await get(step.from).client.closed()).toEqual(step.close)
      else await get(step.leave).client.disconnect()
    }
    try {
      for (const step of steps) await perform(step)
    } finally {
      for (const { client } of open.values()) await client.disconnect()
      const all = JSON.stringify([...open.values()].map(({ client }) => client.messages))
      expect(`${all}${host.output()}`).not.toContain(CANARY)
    }
  }

  for (const { title, steps, modes = ['sandbox', 'sprites'] } of CLAUDE_CONVERSATIONS)
    if (modes.includes(mode)) test(title, () => run(steps))
  if (mode !== 'sprites') return
  test('reports a missing login at once', async () => {
    await sprites?.sprites.write('/home/sprite/.auth/claude.env', 'DISABLE_AUTOUPDATER=1\n')
    await using client = new PtyClient(host, '/ws/claude-stream')
    expect(await eventually(() => client.close, { what: 'the end' })).toEqual({
      code: 4006,
      reason: 'agent_not_configured',
    })
    expect(client.messages.at(-1)?.['message']).toContain('not signed in in the sprite')
  })
})
