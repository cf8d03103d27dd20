import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { runConversation } from './run-conversation.ts'
import { WRITES } from './write-goldens.ts'
import type { GoldenGroup, Golden } from './golden.ts'
import { CONTROL, REPOSITORY } from './git-and-control-goldens.ts'
import { findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import {
  openLocalMode,
  openSandboxd,
  openSandboxMode,
  openSpritesMode,
  type CompatServer,
} from './servers.ts'
import { CONVERSATIONS } from './pty-goldens.ts'
import { EMPTY_FOLDER, UNUSUAL_NAMES, READS } from './read-goldens.ts'
import { isGolden } from './template.ts'

const SERVERS = [
  ['WORKSPACE_MODE=local', openLocalMode],
  ['sandboxes', openSandboxMode],
  ['sandboxd by itself', openSandboxd],
  ...(findFakeSpritesProblem() === undefined ? ([['sprites', openSpritesMode]] as const) : []),
] as const

/** Sends the request of a golden. */
async function send(
  server: CompatServer,
  { request: line, body }: Golden,
): Promise<{ status: number; text: string }> {
  const [method = '', path = ''] = line.split(/ (.*)/)
  const init = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  const response = await server.fetch(path, { method, headers, ...init })
  expect(response.headers.get('content-type')).toMatch(/^application\/json(;|$)/)
  return { status: response.status, text: await response.text() }
}

function inMode(golden: string, { mode, hasClaude }: CompatServer): string {
  return golden
    .replaceAll('$MODE', mode ?? '')
    .replaceAll('$SANDBOXED', String(mode === 'sandbox'))
    .replaceAll('$CLAUDE', String(hasClaude))
}

describe.each([...SERVERS])('the compat API with %s', (_, open) => {
  let server: CompatServer
  beforeAll(async () => {
    server = await open()
    await server.run('true')
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const read = (group: GoldenGroup): void => {
    describe(group.title, () => {
      beforeAll(async () => {
        if (group.script !== undefined) await server.run(group.script)
      })
      for (const golden of group.goldens)
        test(`${golden.request}${golden.body === undefined ? '' : ` ${JSON.stringify(golden.body)}`}`, async () => {
          const { status, text } = await send(server, golden)
          const expected = inMode(golden.text, server)
          // Compared as a whole, so that a difference is shown side by side.
          expect({ status, text: isGolden(text, expected) ? expected : text }).toEqual({
            status: golden.status,
            text: expected,
          })
        })
    })
  }
  for (const group of [EMPTY_FOLDER, READS, WRITES, UNUSUAL_NAMES, REPOSITORY]) read(group)
  if (open === openSandboxd) return
  read(CONTROL)
  test('a session of Claude Code is refused with a reason where it cannot have one', async () => {
    const client = server.openClaude?.()
    const reason = server.hasClaude
      ? 'Claude Code is not installed in the sprite'
      : 'no key of the model API is configured'
    expect(await client?.closed()).toEqual({ code: 4006, reason: 'agent_not_configured' })
    const error = client?.messages.find(({ subtype }) => subtype === 'error')
    expect(error).toEqual({
      type: 'system',
      subtype: 'error',
      message: expect.stringContaining(`Cannot start the agent: ${reason}`) as unknown,
    })
  })
  describe('a terminal', () => {
    for (const conversation of CONVERSATIONS)
      test(conversation.title, () =>
        runConversation(
          conversation,
          (query) => {
            if (server.openPty === undefined) throw new Error('It has no terminals')
            return server.openPty(query)
          },
          server.killedCode,
        ),
      )
    test('is listed among the sessions while it runs', async () => {
      const client = server.openPty?.({})
      await client?.name()
      const listed = await (await server.fetch('/api/sessions')).text()
      const one = '{"id":"$ID","type":"pty","alive":true,"clients":1,"history_count":$COUNT}'
      const many = listed.replace(/^\{"sessions":\[|\]\}$/g, '').split(/(?<=\}),/)
      expect(many.filter((each) => isGolden(each, one))).toHaveLength(1)
      await client?.disconnect()
    })
  })
})
