import { expect, test } from 'bun:test'
import { callTool, inTurns, openFakeAnthropic, say } from '@sandwire/testing/fake-anthropic'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { findClaude } from './support/agents/real-agents.ts'
import { findBrowserProblem } from './support/browser.ts'
import { WorkbenchFixture } from './support/workbench.ts'

const claude = await findClaude()
const problem = claude.problem ?? findBrowserProblem()
if (problem !== undefined) console.error(`agents in the workbench: skipped, ${problem}`)
const KEY = 'sk-ant-workbench'
/** On the disk of the installed program, so that it can be linked. */
const CACHE = resolve(import.meta.dir, '../../.cache')
/** For a loaded machine. */
const WAIT = { timeout: 50_000 }

const REPORT =
  '# All done\n\nSee [the docs](https://example.com/docs).\n\n<img src="/beacon.png" onerror="alert(1)">'

test.skipIf(problem !== undefined)(
  'a person starts a run in the workbench, answers it on one page and another shows it, and comments on the diff',
  async () => {
    const data = mkdtempSync(join(CACHE, 'agent-workbench-'))
    mkdirSync(join(data, 'agents'))
    Bun.spawnSync([
      'cp',
      '-al',
      `${claude.problem === undefined ? claude.folder : ''}/.`,
      join(data, 'agents'),
    ])
    const script = inTurns(
      callTool('TodoWrite', {
        todos: [{ content: 'Write a file', status: 'in_progress', activeForm: 'Writing a file' }],
      }),
      callTool('Write', { file_path: '/workspace/hello.txt', content: 'hello\nworld\n' }),
      say(REPORT),
    )
    await using api = await openFakeAnthropic({ script, key: KEY })
    try {
      await using fixture = await WorkbenchFixture.start({
        data,
        env: { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: api.url },
      })
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
      await using phone = await fixture.openPage({ viewport: { width: 390, height: 780 } })
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
      await page.getByRole('button', { name: '1 file changed' }).click()
      await page.getByRole('button', { name: 'Comment on line 2' }).click()
      await page.locator('.patch-comment textarea').fill('Say moon')
      await workbench.button('Add comment').click()
      await workbench.button('Send 1 comment').click()
      expect(await page.getByLabel('Task').inputValue()).toBe('hello.txt:2: Say moon')
      expect([...workbench.errors, ...phone.errors]).toEqual([])
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  },
  180_000,
)
