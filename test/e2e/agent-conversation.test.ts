import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  callTool,
  type FakeAnthropic,
  openFakeAnthropic,
  say,
  type Script,
} from '@sandwire/testing/fake-anthropic'
import { eventually } from '@sandwire/testing'
import { AgentDeployment } from './support/agents/agent-deployment.ts'
import { ConversationBrowser } from './support/agents/conversation-browser.ts'
import { findAgent, findClaude } from './support/agents/real-agents.ts'

const claude = await findClaude()
if (claude.problem !== undefined) console.error(`conversations on a host: skipped, ${claude.problem}`)
const openCode = await findAgent('opencode')
if (openCode.problem !== undefined)
  console.error(`a conversation with OpenCode: skipped, ${openCode.problem}`)

/** Generous, for a loaded machine. */
const WAIT_MS = 90_000
const LIMITS = { limits: { diskBytes: 256 * 1024 ** 2 } }

/** Asks to write a file and then repeats what it was told; or, when told to count, works for some seconds. */
const script: Script = (request) => {
  const { isSide, toolResults, body, userTexts } = request
  if (isSide) return say('Title')
  const told = JSON.stringify(body)
  const puts = userTexts.flatMap((text) => PUT.exec(text)?.[1] ?? [])
  const last = puts.at(-1)
  if (last !== undefined) {
    if (toolResults >= puts.length) return say(`Put ${last}`)
    return callTool('Bash', {
      command: `${last === 'slow' ? 'sleep 4; ' : ''}echo ${last} > ${last}.txt; echo ${last} > all.txt`,
    })
  }
  if (told.includes('Just talk')) return say(told.includes('use tabs') ? 'With tabs' : 'Hello')
  if (told.includes('Count') && toolResults === 0)
    return callTool('Bash', { command: 'echo 1 > count.txt; sleep 4; echo 2 >> count.txt' })
  if (told.includes('Count')) return say(told.includes('Go on') ? 'Went on' : 'Counted')
  if (toolResults === 0) return callTool('Write', { file_path: '/workspace/hello.txt', content: 'hello\n' })
  return say(told.includes('use tabs') ? 'With tabs' : 'Written')
}

/** Has the agent write files. A notice may be before it. */
const PUT = /^Put (\w+)$/m

/** Numbers from 1 to the last. */
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

describe.skipIf(claude.problem !== undefined)('a conversation with the real agent', () => {
  let api: FakeAnthropic
  let agents: AgentDeployment

  beforeAll(async () => {
    api = await openFakeAnthropic({ script })
    agents = await AgentDeployment.open(api.url)
  }, WAIT_MS)
  afterAll(async () => {
    await agents[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
  })

  async function killWorkerd(): Promise<void> {
    await agents.deployment.killWorkerd()
    await eventually(async () => (await agents.send('GET', '/health')).status === 200, {
      what: 'control to serve again',
      timeoutMs: WAIT_MS,
    })
  }

  /** A page with a new conversation that does not ask, in a sandbox of this name. */
  async function begin(name: string, fields: object = {}): Promise<ConversationBrowser> {
    await agents.deployment.create(name, LIMITS)
    const order = { sandbox: name, sessionId: name, permission: 'auto', ...fields }
    const { status, body } = await agents.send('POST', '/api/conversations', order)
    if (status !== 201) throw new Error(`Cannot begin: ${JSON.stringify(body)}`)
    const browser = new ConversationBrowser(agents, `sessionId=${name}`)
    await browser.waitFor('history_end')
    return browser
  }

  test(
    'is shown to two browsers, asks one of them, and goes on after the server was killed',
    async () => {
      await agents.deployment.create('chat', LIMITS)
      using first = new ConversationBrowser(agents, 'sessionId=s1&sandbox=chat')
      await first.waitFor('history_end')
      using second = new ConversationBrowser(agents, 'sessionId=s1')
      await second.waitFor('history_end')
      first.send({ type: 'start', content: 'Write a file' })
      const request = await second.waitFor('tool_permission_request')
      expect(request).toMatchObject({ toolName: 'Write' })
      second.send({ type: 'permission_response', requestId: request['requestId'], decision: 'allow' })
      for (const browser of [first, second]) {
        await browser.waitFor('done')
        expect(browser.texts).toEqual(['Written'])
      }
      const file = await agents.deployment.fetch('/api/file?path=hello.txt&sandbox=chat')
      expect(await file.json()).toMatchObject({ content: 'hello\n' })
      await first.until('control to hang up', () =>
        first.frames.at(-1)?.['sandboxStatus'] === 'disconnected' ? true : undefined,
      )
      await killWorkerd()
      using third = new ConversationBrowser(agents, 'sessionId=s1')
      await third.waitFor('history_end')
      third.send({ type: 'message', content: 'Please use tabs' })
      await third.waitFor('done', 2)
      expect(third.texts).toEqual(['Written', 'With tabs'])
    },
    WAIT_MS * 2,
  )

  test(
    'loses and repeats nothing when workerd is killed during a turn',
    async () => {
      using before = await begin('killed')
      before.send({ type: 'message', content: 'Count' })
      await before.waitFor('sdk_message', 2)
      await killWorkerd()
      const last = before.seqs.at(-1) ?? 0
      using after = new ConversationBrowser(agents, `sessionId=killed&after=${last}`)
      await after.waitFor('done')
      const seqs = [...before.seqs, ...after.seqs]
      expect(seqs).toEqual(upTo(seqs.length))
      expect([...before.texts, ...after.texts]).toEqual(['Counted'])
    },
    WAIT_MS * 2,
  )

  test(
    'says that its agent was killed with sandboxd, and goes on with the next message, also after a stop',
    async () => {
      using browser = await begin('crashed')
      browser.send({ type: 'message', content: 'Count' })
      await browser.until('the agent to use a tool', () =>
        JSON.stringify(browser.frames).includes('tool_use') ? true : undefined,
      )
      const { id } = await agents.deployment.describe('crashed')
      process.kill(agents.deployment.sandboxd(id), 'SIGKILL')
      expect(await browser.waitFor('error')).toMatchObject({ code: 'run_ended' })
      browser.send({ type: 'message', content: 'Go on' })
      await browser.until('the agent to go on', () => (browser.texts.includes('Went on') ? true : undefined))
      await browser.waitFor('done', 2)
      expect((await agents.send('POST', '/api/sandboxes/crashed/stop')).status).toBeLessThan(300)
      browser.send({ type: 'message', content: 'Once more' })
      await browser.waitFor('done', 3)
      expect(api.requests.filter(({ isSide }) => !isSide).at(-1)?.body).toMatchObject({
        messages: expect.arrayContaining([expect.objectContaining({ role: 'assistant' })]) as unknown,
      })
      expect(browser.seqs).toEqual(upTo(browser.seqs.length))
    },
    WAIT_MS * 3,
  )

  test(
    'goes back to the files at any message and undoes that, and its agent is told and remembers everything',
    async () => {
      using browser = await begin('restored')
      const path = '/api/conversations/'
      const id = String((await browser.waitFor('connected'))['conversationId'])
      const put = async (name: string): Promise<void> => {
        const count = browser.frames.filter(({ type }) => type === 'done').length
        browser.send({ type: 'message', content: `Put ${name}`, id: name })
        await browser.waitFor('done', count + 1)
      }
      const files = async (): Promise<readonly string[]> => {
        const tree = await agents.deployment.fetch('/api/workspaces/restored/tree?path=.')
        return ((await tree.json()) as { entries: { name: string }[] }).entries.map(({ name }) => name)
      }
      const restore = async (target: object): Promise<void> => {
        const count = browser.frames.filter(({ type }) => type === 'files_restored').length
        expect(await agents.send('POST', `${path}${id}/restore`, target)).toMatchObject({ status: 202 })
        await browser.waitFor('files_restored', count + 1)
      }
      for (const name of ['one', 'two', 'three']) await put(name)
      expect(await files()).toEqual(['all.txt', 'one.txt', 'three.txt', 'two.txt'])
      const points = (await agents.send('GET', `${path}${id}/restore-points`)).body
      expect(points).toMatchObject({
        turns: ['one', 'two', 'three'].map((message) => ({ message, problem: null })),
        canUndo: false,
      })

      await restore({ message: 'two' })
      expect(await files()).toEqual(['all.txt', 'one.txt'])
      await restore({ undo: true })
      expect(await files()).toEqual(['all.txt', 'one.txt', 'three.txt', 'two.txt'])
      await restore({ message: 'one' })
      expect(await files()).toEqual([])
      await put('four')
      expect(await files()).toEqual(['all.txt', 'four.txt'])
      const { userTexts } = api.requests.filter(({ isSide }) => !isSide).at(-1) ?? { userTexts: [] }
      const sent = userTexts.filter((text) => text.includes('Put '))
      expect(sent.slice(0, 3)).toEqual(['Put one', 'Put two', 'Put three'])
      expect(sent[3]).toContain('were restored to what they were when this message was sent: "Put one"')
      expect(sent).toHaveLength(4)
      // While it works, nothing is restored.
      browser.send({ type: 'message', content: 'Put slow', id: 'slow' })
      await browser.until('the agent to work', () =>
        JSON.stringify(browser.frames).includes('sleep 4') ? true : undefined,
      )
      expect(await agents.send('POST', `${path}${id}/restore`, { undo: true })).toMatchObject({
        status: 409,
        body: { error: { code: 'conflict' } },
      })
      expect(browser.seqs).toEqual(upTo(browser.seqs.length))
    },
    WAIT_MS * 2,
  )

  test.skipIf(openCode.problem !== undefined)(
    'with OpenCode is continued by a new program',
    async () => {
      using browser = await begin('other', { agent: 'opencode' })
      browser.send({ type: 'message', content: 'Just talk' })
      await browser.waitFor('done')
      browser.send({ type: 'close' })
      await browser.until('the program to end', () =>
        browser.frames.at(-1)?.['sandboxStatus'] === 'disconnected' ? true : undefined,
      )
      browser.send({ type: 'message', content: 'Please use tabs' })
      await browser.waitFor('done', 2)
      expect(browser.texts).toEqual(['Hello', 'With tabs'])
    },
    WAIT_MS * 2,
  )
})
