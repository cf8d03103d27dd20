import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { AxeResults } from 'axe-core'
import axe from 'axe-core'
import {
  callTool,
  type FakeAnthropic,
  inTurns,
  type ModelRequest,
  openFakeAnthropic,
  type Reply,
  say,
  type Script,
} from '@sandwire/testing/fake-anthropic'
import { eventually } from '@sandwire/testing'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Locator, Page, WebSocketRoute } from 'playwright-core'
import { type GitServer, openGitServer } from '../../apps/control/test/support/git-server.ts'
import { findClaude } from './support/agents/real-agents.ts'
import { findBrowserProblem } from './support/browser.ts'
import { WorkbenchFixture, type WorkbenchPage } from './support/workbench.ts'

const claude = await findClaude()
const problem = claude.problem ?? findBrowserProblem()
if (problem !== undefined) console.error(`agents in the workbench: skipped, ${problem}`)
const KEY = 'sk-ant-workbench'
const GIT_TOKEN = 'git-workbench'
const PULL_REQUEST = 'https://github.com/owner/one/pull/7'
/** On the disk of the installed program, so that it can be linked. */
const CACHE = resolve(import.meta.dir, '../../.cache')
/** For a loaded machine. */
const WAIT = { timeout: 50_000 }
const TEST_MS = 180_000
const PHONE = { viewport: { width: 390, height: 780 } }

const REPORT =
  '# All done\n\nSee [the docs](https://example.com/docs).\n\n<img src="/beacon.png" onerror="alert(1)">'

const run = inTurns(
  callTool('TodoWrite', {
    todos: [{ content: 'Write a file', status: 'in_progress', activeForm: 'Writing a file' }],
  }),
  callTool('Write', { file_path: '/workspace/hello.txt', content: 'hello\nworld\n' }),
  say(REPORT),
)

/** Text that is being written until the test goes on. */
let held = Promise.withResolvers<void>()

/** Whether the last message of the person's side has the result of a tool. */
function hasResult({ body }: ModelRequest): boolean {
  const messages = body['messages'] as readonly { readonly role: string; readonly content: unknown }[]
  const last = messages.findLast(({ role }) => role === 'user')?.content
  return Array.isArray(last) && last.some((block: { readonly type?: string }) => block.type === 'tool_result')
}

/** What the agent of conversations does: the last line of the person that begins with a known word. */
async function talk(request: ModelRequest): Promise<Reply> {
  // After a restore of the files, a notice is before it.
  const messages = request.userTexts.map((text) => text.split('\n\n').at(-1) ?? '')
  const order = messages.findLast((text) => /^(?:write|say|hold|open) /.test(text)) ?? ''
  const [, verb = '', rest = ''] = /^(\w+) ([^]*)$/.exec(order) ?? []
  switch (verb) {
    case 'write': {
      if (hasResult(request)) return say(`Wrote **${rest}**`)
      return callTool('Write', { file_path: `/workspace/${rest}`, content: `${rest}\nsecond\n` })
    }
    case 'open':
      return hasResult(request)
        ? say(`Opened ${rest}`)
        : callTool('mcp__terminals__terminal_open', { command: rest })
    case 'hold':
      await held.promise
      return say(`Held ${rest}`)
    default:
      return say(rest)
  }
}

const script: Script = (request) => {
  if (request.isSide) return say('Title')
  return request.userTexts.some((text) => text.includes('Write a hello file')) ? run(request) : talk(request)
}

declare const window: { readonly axe: { run(): Promise<AxeResults> } }

async function findViolations({ page }: WorkbenchPage): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => window.axe.run())
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`))
}

const composer = (page: Page): Locator => page.getByLabel('Message to the agent')

async function tell(page: Page, text: string): Promise<void> {
  await composer(page).fill(text)
  await composer(page).press('Enter')
}

const offline = new WeakSet<WorkbenchPage>()
const sockets = new WeakMap<WorkbenchPage, WebSocketRoute[]>()

/** Lets the test close the page's sockets of conversations. */
async function followSockets(workbench: WorkbenchPage): Promise<void> {
  sockets.set(workbench, [])
  await workbench.page.routeWebSocket(/\/ws\/v2/, (route) => {
    if (offline.has(workbench)) return void route.close({ code: 4000 })
    route.connectToServer()
    sockets.get(workbench)?.push(route)
  })
}

function disconnect(workbench: WorkbenchPage): void {
  offline.add(workbench)
  for (const route of sockets.get(workbench)?.splice(0) ?? []) void route.close({ code: 4000 })
}

function connect(workbench: WorkbenchPage): void {
  offline.delete(workbench)
}

const SHOTS = process.env['SANDWIRE_SCREENSHOTS']

/** For people who look at them. */
async function shoot({ page }: WorkbenchPage, name: string): Promise<void> {
  if (SHOTS !== undefined) await page.screenshot({ path: join(SHOTS, `${name}.png`) })
}

/** The part of GitHub's API that pull requests need. */
function openGithub() {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ method, url }) => {
      if (!url.endsWith('/pulls')) return Response.json({ default_branch: 'main' })
      return method === 'POST'
        ? Response.json({ number: 7, html_url: PULL_REQUEST }, { status: 201 })
        : Response.json([])
    },
  })
}

describe.skipIf(problem !== undefined)('agents in the workbench', () => {
  let data: string
  let api: FakeAnthropic
  let fixture: WorkbenchFixture
  let server: GitServer
  let github: ReturnType<typeof openGithub>

  beforeAll(async () => {
    data = mkdtempSync(join(CACHE, 'agent-workbench-'))
    mkdirSync(join(data, 'agents'))
    const folder = claude.problem === undefined ? claude.folder : ''
    Bun.spawnSync(['cp', '-al', `${folder}/.`, join(data, 'agents')])
    api = await openFakeAnthropic({ script, key: KEY })
    server = openGitServer(['owner/one'], `x-access-token:${GIT_TOKEN}`)
    github = openGithub()
    const git = [{ host: 'github.com', url: server.url, secret: 'GIT_TOKEN' }]
    const credentials = { git, githubApiUrl: `http://127.0.0.1:${github.port}` }
    writeFileSync(join(data, 'settings.json'), JSON.stringify({ credentials }), { mode: 0o600 })
    const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: api.url, GIT_TOKEN }
    fixture = await WorkbenchFixture.start({ data, env })
  }, TEST_MS)
  afterAll(async () => {
    await fixture[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    await github.stop(true)
    rmSync(data, { recursive: true, force: true })
  })

  test(
    'a person starts a run in the workbench, answers it on one page and another shows it, and comments on the diff',
    async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.button('Agents').click()
      await workbench.button('New run').first().click()
      await page.getByLabel('Task').fill('Write a hello file')
      await page.getByRole('button', { name: 'Start', exact: true }).click()

      const allow = page.getByRole('button', { name: 'Allow', exact: true })
      await allow.waitFor(WAIT)
      await page.getByText('0 of 1 done').waitFor()
      expect(await page.locator('.request-card ins').allTextContents()).toEqual(['+ hello\n', '+ world\n'])

      // The same run on a phone, which answers.
      await using phone = await fixture.openPage(PHONE)
      await phone.button('Agents').click()
      await phone.page.getByRole('button', { name: /^Write a hello file/ }).click()
      await phone.page.getByRole('button', { name: 'Allow', exact: true }).click(WAIT)
      for (const each of [page, phone.page]) {
        await each.getByRole('heading', { name: 'All done' }).waitFor(WAIT)
        await each.getByText('Allowed by').waitFor()
        // HTML of the model is text, and its links ask first.
        expect(await each.locator('.transcript img, .transcript a').count()).toBe(0)
      }
      await page.getByRole('button', { name: 'the docs' }).click()
      await page.getByText('https://example.com/docs').waitFor()
      await workbench.button('Cancel').click()

      await page.reload()
      await page.getByRole('heading', { name: 'All done' }).waitFor(WAIT)
      await workbench.button('End the run').click()
      await page.getByRole('dialog').getByRole('button', { name: 'End the run' }).click()
      await page.getByText('This run has ended.').waitFor(WAIT)
      await page.getByRole('button', { name: 'Restore files' }).first().click()
      await page.getByRole('dialog').getByRole('button', { name: 'Restore files' }).click()
      await page.getByText('The files of the sandbox were restored.').waitFor(WAIT)
      await page.getByRole('button', { name: '1 file changed' }).click()
      await page.getByRole('button', { name: 'Comment on line 2' }).click()
      await page.locator('.patch-comment textarea').fill('Say moon')
      await workbench.button('Add comment').click()
      await workbench.button('Send 1 comment').click()
      expect(await page.getByLabel('Task').inputValue()).toBe('hello.txt:2: Say moon')
      expect([...workbench.errors, ...phone.errors]).toEqual([])
    },
    TEST_MS,
  )

  test(
    'people talk with an agent on two pages, one of them a phone, also across a reload and while offline',
    async () => {
      held = Promise.withResolvers()
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.button('Agents').click()
      await workbench.button('New conversation').first().click()
      await page.getByLabel('First message').fill('write greeting.txt')
      await page.getByRole('button', { name: 'Start', exact: true }).click()
      await page.getByRole('button', { name: 'Allow', exact: true }).waitFor(WAIT)
      expect(await page.locator('.request-card ins').allTextContents()).toEqual([
        '+ greeting.txt\n',
        '+ second\n',
      ])
      await shoot(workbench, 'request')

      await using phone = await fixture.openPage(PHONE)
      await followSockets(phone)
      await phone.button('Agents').click()
      await phone.page.getByRole('button', { name: /^write greeting.txt/ }).click()
      await phone.page.getByRole('button', { name: 'Allow', exact: true }).waitFor(WAIT)
      await shoot(phone, 'request-phone')
      await phone.page.getByRole('button', { name: 'Allow', exact: true }).click()
      for (const each of [page, phone.page]) {
        await each.getByText('Wrote greeting.txt').waitFor(WAIT)
        await each.getByText('Allowed by').waitFor()
        await each.getByRole('status').getByText('Ready').waitFor(WAIT)
      }

      // A message without a connection is sent when there is one.
      disconnect(phone)
      await phone.page.getByText('Offline').waitFor(WAIT)
      await tell(phone.page, 'hold the line')
      await phone.page.getByText('Sent when the server can be reached').waitFor()
      await shoot(phone, 'offline-phone')
      await phone.page.reload()
      await phone.page.getByText('Sent when the server can be reached').waitFor(WAIT)
      connect(phone)
      await page.getByText('hold the line').first().waitFor(WAIT)
      await page.getByRole('status').getByText('Working').waitFor(WAIT)
      // A reload in the middle of a turn.
      await page.reload()
      await page.getByRole('status').getByText('Working').waitFor(WAIT)
      const task = page.locator('.own-message', { hasText: 'hold the line' })
      await task.first().waitFor(WAIT)
      expect(await task.count()).toBe(1)
      // Messages wait for the end of the turn; every page sees and may change them.
      await tell(page, 'say first')
      await tell(page, 'say second')
      await tell(page, 'say third')
      await phone.page.getByText('3 messages are queued').waitFor(WAIT)
      const waiting = phone.page.locator('.waiting', { hasText: 'say first' })
      await waiting.getByRole('button', { name: 'Edit' }).click()
      await phone.page.getByLabel('Queued message', { exact: true }).fill('say one')
      await phone.page.getByRole('button', { name: 'Save', exact: true }).click()
      await phone.page
        .locator('.waiting', { hasText: 'say third' })
        .getByRole('button', { name: 'Remove' })
        .click()
      await page.getByText('2 messages are queued').waitFor(WAIT)
      await page.locator('.waiting', { hasText: 'say one' }).waitFor()
      await shoot(workbench, 'queue')
      await shoot(phone, 'queue-phone')
      await page.reload()
      await page.getByText('2 messages are queued').waitFor(WAIT)
      await composer(page).fill('a draft')
      held.resolve()
      for (const each of [page, phone.page])
        for (const text of ['Held the line', 'one', 'second'])
          await each.locator('.model-text').getByText(text, { exact: true }).waitFor(WAIT)
      await page.reload()
      await page.locator('.model-text').getByText('Held the line').waitFor(WAIT)
      expect(await composer(page).inputValue()).toBe('a draft')
      await shoot(workbench, 'conversation')
      await shoot(phone, 'conversation-phone')
      expect(await findViolations(workbench)).toEqual([])
      expect(await findViolations(phone)).toEqual([])

      // A tool that is always allowed is not asked about again, until a person takes that back.
      await composer(page).fill('')
      await tell(page, 'write two.txt')
      await phone.page.getByRole('button', { name: 'Always allow Write' }).click(WAIT)
      await page.getByText('Wrote two.txt').waitFor(WAIT)
      await tell(page, 'write three.txt')
      await page.getByText('Wrote three.txt').waitFor(WAIT)
      await page.getByRole('button', { name: 'Ask again before Write' }).click()
      await tell(page, 'write four.txt')
      await page.getByRole('button', { name: 'Always allow Write' }).waitFor(WAIT)
      expect(await findViolations(workbench)).toEqual([])
      // A stop ends the turn, also while it waits for an answer.
      await workbench.button('Stop the agent').click()
      await page.getByText('No longer needed').waitFor(WAIT)
      await phone.page.getByRole('status').getByText('Ready').waitFor(WAIT)
      await shoot(workbench, 'stopped')
      expect([...workbench.errors, ...phone.errors]).toEqual([])
    },
    TEST_MS,
  )

  test(
    'a person compares, comments and restores the files of a conversation, and undoes that',
    async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.button('Agents').click()
      await workbench.button('New conversation').first().click()
      await page.getByLabel('First message').fill('write first.txt')
      await page.getByRole('radio', { name: 'Work without asking' }).check()
      await page.getByRole('button', { name: 'Start', exact: true }).click()
      await page.getByText('Wrote first.txt').waitFor(WAIT)
      await page.getByRole('status').getByText('Ready').waitFor(WAIT)
      await tell(page, 'write second.txt')
      await page.getByText('Wrote second.txt').waitFor(WAIT)
      await page.getByRole('status').getByText('Ready').waitFor(WAIT)

      const changed = page.locator('.patch-path')
      await page.getByRole('button', { name: 'Changes' }).click()
      await changed.getByText('second.txt').waitFor(WAIT)
      expect(await changed.allTextContents()).toEqual(['second.txt'])
      await page.getByLabel('Changes since').selectOption({ label: 'Message: write first.txt' })
      await changed.getByText('first.txt').waitFor(WAIT)
      expect(await changed.allTextContents()).toContain('second.txt')
      const second = page.locator('.patch-file', { hasText: 'second.txt' })
      await second.getByRole('button', { name: 'Comment on line 2' }).click(WAIT)
      await page.locator('.patch-comment textarea').fill('Say moon')
      await workbench.button('Add comment').click()
      await shoot(workbench, 'changes')
      expect(await findViolations(workbench)).toEqual([])
      await workbench.button('Send 1 comment').click()
      await page.getByRole('button', { name: 'Transcript' }).click()
      await page.locator('.own-message', { hasText: 'second.txt:2: Say moon' }).waitFor(WAIT)
      await page.getByRole('status').getByText('Ready').waitFor(WAIT)

      const files = async (): Promise<string> => {
        const { sandboxes } = (await (await fixture.host.fetch('/api/sandboxes')).json()) as {
          readonly sandboxes: readonly { readonly id: string }[]
        }
        const tree = await fixture.host.fetch(`/api/workspaces/${sandboxes[0]?.id ?? ''}/tree?path=.`)
        return await tree.text()
      }
      const message = page.locator('.own-message', { hasText: 'write second.txt' })
      await message.getByRole('button', { name: 'Restore files' }).click()
      await shoot(workbench, 'restore')
      await page.getByRole('dialog').getByRole('button', { name: 'Restore files' }).click()
      await page.getByText('restored the files to before “write second.txt”').waitFor(WAIT)
      expect(await files()).not.toContain('second.txt')
      await page.reload()
      await page.getByRole('button', { name: 'Undo' }).click(WAIT)
      await page.getByRole('dialog').getByRole('button', { name: 'Restore files' }).click()
      await page.getByText('undid the restore of the files').waitFor(WAIT)
      expect(await files()).toContain('second.txt')
      await shoot(workbench, 'restored')

      await tell(page, 'open bash')
      await page.getByText('Opened bash').waitFor(WAIT)
      const { sessions } = (await (await fixture.host.fetch('/api/account/sessions')).json()) as {
        readonly sessions: readonly { readonly id: string; readonly agentRun?: string }[]
      }
      await workbench.button('Open a terminal of the agent').click()
      await workbench.first.until(
        ({ session }) => sessions.find(({ agentRun }) => agentRun !== undefined)?.id === session,
      )
      expect(workbench.errors).toEqual([])
    },
    TEST_MS,
  )

  test(
    'a page that shows no agents says that one waits, after a reload',
    async () => {
      held = Promise.withResolvers()
      const post = (path: string, json: object): Promise<Response> =>
        fixture.host.fetch(path, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(json),
        })
      const { id } = (await (await post('/api/conversations', {})).json()) as { readonly id: string }
      await post(`/api/conversations/${id}/messages`, { text: 'hold the door' })
      await using workbench = await fixture.openPage()
      const { page } = workbench
      const listed = page.waitForResponse(/\/api\/conversations\b/, WAIT)
      await page.reload()
      await listed
      held.resolve()
      await page.getByText('An agent is waiting for you: hold the door').waitFor(WAIT)
      await shoot(workbench, 'waits')
      expect(workbench.errors).toEqual([])
    },
    TEST_MS,
  )

  test(
    'a person publishes the changes of a run as a branch with a pull request, where the server can',
    async () => {
      const order = { repo: 'https://github.com/owner/one', task: 'write made.txt' }
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify(order)
      const created = await fixture.host.fetch('/api/runs', { method: 'POST', headers, body })
      const { id } = (await created.json()) as { readonly id: string }
      await eventually(
        async () => {
          const run = (await (await fixture.host.fetch(`/api/runs/${id}`)).json()) as {
            readonly state: string
          }
          return run.state === 'ended'
        },
        { what: 'the run to end', timeoutMs: WAIT.timeout, intervalMs: 100 },
      )
      const show = async (workbench: WorkbenchPage): Promise<void> => {
        await workbench.button('Agents').click()
        await workbench.page.getByRole('button', { name: /^write made.txt/ }).click(WAIT)
        await workbench.page.getByRole('button', { name: '1 file changed' }).click(WAIT)
      }

      // A server without a token says so.
      const reason = 'Cannot publish the changes: no token for "github.com" is configured'
      await using phone = await fixture.openPage(PHONE)
      await phone.page.route(`**/api/runs/${id}`, async (route) => {
        const run = (await (await fixture.host.fetch(`/api/runs/${id}`)).json()) as object
        await route.fulfill({ json: { ...run, publishable: { problem: reason, pullRequest: true } } })
      })
      await show(phone)
      await phone.page.getByText(reason).waitFor(WAIT)
      expect(await phone.button('Publish…').count()).toBe(0)
      await shoot(phone, 'not-publishable-phone')
      await phone.page.unroute(`**/api/runs/${id}`)
      await phone.page.reload()
      await phone.page.getByRole('button', { name: '1 file changed' }).click(WAIT)
      await phone.button('Publish…').click(WAIT)
      await shoot(phone, 'publish-phone')

      await using workbench = await fixture.openPage()
      const { page } = workbench
      await show(workbench)
      await workbench.button('Publish…').click(WAIT)
      expect(await page.getByLabel('New branch').inputValue()).toBe('agent/write-made-txt')
      await page.getByLabel('New branch').fill('main')
      await shoot(workbench, 'publish')
      expect(await findViolations(workbench)).toEqual([])
      await workbench.button('Push and open a pull request').click()
      await page.getByText('branch "main" exists; choose another name').waitFor(WAIT)
      await page.getByLabel('New branch').fill('agent/made')
      await workbench.button('Push and open a pull request').click()
      await page.getByRole('dialog').getByText('is on the branch agent/made.').waitFor(WAIT)
      expect(server.git('owner/one', 'diff', '--name-status', 'main', 'agent/made')).toBe('A\tmade.txt\n')
      // The link is shown before it is followed.
      await page.getByRole('dialog').getByRole('button', { name: 'Pull request 7' }).click()
      await page.getByText(PULL_REQUEST).waitFor()
      await shoot(workbench, 'published')
      expect(await findViolations(workbench)).toEqual([])
      expect([...workbench.errors, ...phone.errors]).toEqual([])
    },
    TEST_MS,
  )

  test(
    'a person publishes the changes of a conversation, and the page says so after a reload',
    async () => {
      const headers = { 'content-type': 'application/json' }
      const post = async (path: string, json: object): Promise<{ readonly id: string }> => {
        const response = await fixture.host.fetch(path, {
          method: 'POST',
          headers,
          body: JSON.stringify(json),
        })
        return (await response.json()) as { readonly id: string }
      }
      // Before the conversation has a sandbox, which the page could show instead of a terminal.
      await using workbench = await fixture.openPage()
      const order = { repo: 'https://github.com/owner/one', permission: 'auto' }
      const { id } = await post('/api/conversations', order)
      await post(`/api/conversations/${id}/messages`, { text: 'write talked.txt' })
      const show = async (workbench: WorkbenchPage): Promise<void> => {
        await workbench.button('Agents').click()
        await workbench.page.getByRole('button', { name: /^write talked.txt/ }).click(WAIT)
        await workbench.page.getByRole('status').getByText('Ready').waitFor(WAIT)
        await workbench.button('Changes').click()
      }
      const { page } = workbench
      await show(workbench)
      await workbench.button('Publish…').click(WAIT)
      await page.getByText('1 file changed').click(WAIT)
      await page.getByRole('dialog').getByText('talked.txt', { exact: true }).waitFor()
      await shoot(workbench, 'conversation-publish')
      expect(await findViolations(workbench)).toEqual([])
      await workbench.button('Push and open a pull request').click()
      await page.getByRole('dialog').getByText('is on the branch agent/write-talked-txt.').waitFor(WAIT)
      expect(server.git('owner/one', 'diff', '--name-status', 'main', 'agent/write-talked-txt')).toBe(
        'A\ttalked.txt\n',
      )
      await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
      await page.reload()
      await workbench.button('Changes').click(WAIT)
      await page.getByText('is on the branch agent/write-talked-txt.').waitFor(WAIT)
      await shoot(workbench, 'conversation-published')
      await using phone = await fixture.openPage(PHONE)
      await show(phone)
      await phone.button('Pull request 7').waitFor(WAIT)
      await shoot(phone, 'conversation-published-phone')
      expect([...workbench.errors, ...phone.errors]).toEqual([])
    },
    TEST_MS,
  )

  test(
    "a person continues a conversation in the agent's own interface",
    async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.button('Agents').click()
      await workbench.button('New conversation').first().click()
      await page.getByLabel('First message').fill('say something')
      await page.getByRole('button', { name: 'Start', exact: true }).click()
      await page.locator('.model-text').getByText('something', { exact: true }).waitFor(WAIT)
      await page.getByRole('status').getByText('Ready').waitFor(WAIT)
      await workbench.button("Continue in the agent's own terminal interface").click(WAIT)
      const shows = (text: string): Promise<unknown> =>
        eventually(async () => (await workbench.terminal(0).text()).includes(text), {
          what: text,
          timeoutMs: WAIT.timeout,
          intervalMs: 100,
        })
      await shows('❯ say something')
      await shows('for shortcuts')
      await shoot(workbench, 'tui')
      expect(workbench.errors).toEqual([])
    },
    TEST_MS,
  )
})
