import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import {
  banner,
  editor,
  EditedWorkspace,
  heightOf,
  isAtHeight,
  mine,
  tab,
} from './support/edited-workspace.ts'
import { WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)
const LONG = Array.from({ length: 600 }, (_, at) => `line ${at + 1}\n`).join('')

describe.skipIf(problem !== undefined)(
  `the editor of the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    test('accepts typing during a slow save', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      await workspace.show('slow.txt', 'start')
      await editor(workbench).click()
      const devTools = await workbench.context.newCDPSession(page)
      const link = { offline: false, latency: 100, downloadThroughput: -1, uploadThroughput: -1 }
      await devTools.send('Network.emulateNetworkConditions', link)
      await page.keyboard.press('Control+End')
      for (const word of [' one', ' two', ' three']) {
        await page.keyboard.type(word, { delay: 15 })
        await page.keyboard.press('Control+S')
        await page.keyboard.type(' more', { delay: 40 })
      }
      const text = 'start one more two more three more'
      await eventually(async () => (await workspace.read('slow.txt')) === 'start one more two more three', {
        what: 'the last save',
      })
      await page.getByRole('status').getByText('Unsaved').waitFor()
      expect(await banner(workbench).count()).toBe(0)
      expect(await editor(workbench).innerText()).toBe(text)
      await page.keyboard.press('Control+S')
      await tab(workbench, /^slow.txt$/).waitFor()
      expect(await workspace.read('slow.txt')).toBe(text)
      expect(workbench.errors).toEqual([])
    })

    test('keeps focus, cursor and scroll position when the file changes on disk', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      await workspace.show('both.txt', LONG)
      // Without unsaved text there would be no conflict.
      await workspace.goToLine(2)
      await page.keyboard.type(' mine')
      await workspace.goToLine(300)
      const before = await heightOf(editor(workbench), 'line 300')
      await page.keyboard.type('abc', { delay: 20 })
      const typing = page.keyboard.type('defghijklmnopqrstuvwxyz', { delay: 40 })
      await workspace.write('both.txt', LONG.replace('line 310', 'line of another user'))
      await typing
      await mine(workbench).waitFor()
      const typed = 'line 300abcdefghijklmnopqrstuvwxyz'
      expect(await mine(workbench).locator('.cm-line').getByText(typed, { exact: true }).count()).toBe(1)
      await isAtHeight(mine(workbench), typed, before)
      // The file changes again.
      await workspace.write('both.txt', LONG.replace('line 290', 'another'))
      await page.locator('.cm-merge-a').getByText('another', { exact: true }).waitFor()
      await page.keyboard.type('!')
      await mine(workbench).locator('.cm-line').getByText(`${typed}!`, { exact: true }).waitFor()
      await isAtHeight(mine(workbench), `${typed}!`, before)
      const untouched = mine(workbench).locator('.cm-line').getByText('line 300', { exact: true })
      // Keys that were handled half a second apart are separate undo steps.
      for (let steps = 0; steps < typed.length && (await untouched.count()) === 0; steps += 1)
        await page.keyboard.press('Control+Z')
      expect(await untouched.count()).toBe(1)
      await page.keyboard.press('Control+Shift+Z')
      await page.keyboard.type('?')
      await page.getByRole('button', { name: 'Keep mine' }).click()
      await banner(workbench).waitFor({ state: 'detached' })
      await page.keyboard.type('.')
      await page.keyboard.press('Control+S')
      await tab(workbench, /^both.txt$/).waitFor()
      const line = (await workspace.read('both.txt')).split('\n')[299]
      expect(line).toMatch(/^line 300a.*\?\.$/)
      await isAtHeight(editor(workbench), line ?? '', before)
      expect(workbench.errors).toEqual([])
    })

    test('leaves the focus elsewhere when the file changes on disk', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      await workspace.show('aside.txt', 'one\n')
      await editor(workbench).click()
      await page.keyboard.type('mine ')
      await page.keyboard.press('Control+Shift+F')
      const field = page.getByLabel('Search in files').last()
      await field.fill('word')
      await workspace.write('aside.txt', 'theirs\n')
      await mine(workbench).waitFor()
      await page.keyboard.type('s')
      expect(await field.inputValue()).toBe('words')
      await workspace.write('aside.txt', 'one\n')
      await banner(workbench).waitFor({ state: 'detached' })
      await page.keyboard.type('!')
      expect(await field.inputValue()).toBe('words!')
      expect(await editor(workbench).innerText()).toContain('mine')
    })

    test('does not jump back to its initial line when a conflict ends', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      // Unique among the files of these tests.
      const led = LONG.replace('line 300\n', 'line 300 of led\n')
      await workspace.write('led.txt', led)
      await page.keyboard.press('Control+Shift+F')
      await page.getByLabel('Search in files').last().fill('line 300 of led')
      await page.locator('.found-line').first().click()
      await editor(workbench).getByText('line 300 of led').waitFor()
      await workspace.goToLine(310)
      await page.keyboard.type('x')
      await workspace.write('led.txt', `first\n${led}`)
      await banner(workbench).waitFor()
      await workspace.write('led.txt', led)
      await banner(workbench).waitFor({ state: 'detached' })
      await page.keyboard.type('y')
      await editor(workbench).locator('.cm-line').getByText('line 310xy', { exact: true }).waitFor()
    })

    test('keeps its search bar when the file changes on disk', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      await workspace.show('find.txt', LONG)
      await workspace.goToLine(2)
      await page.keyboard.type(' mine')
      await page.keyboard.press('Control+F')
      await page.keyboard.type('lin', { delay: 20 })
      await workspace.write('find.txt', LONG.replace('line 6', 'line six'))
      await mine(workbench).waitFor()
      await page.keyboard.type('e 5')
      expect(await page.getByLabel('Find', { exact: true }).inputValue()).toBe('line 5')
      await page.keyboard.press('Enter')
      await page.keyboard.press('Escape')
      await page.keyboard.type('found')
      await mine(workbench).locator('.cm-line').getByText('found', { exact: true }).waitFor()
      expect(await mine(workbench).locator('.cm-line').nth(1).innerText()).toBe('line 2 mine')
    })

    test('offers no changes of a deleted file', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      await workspace.show('gone.txt', 'one\ntwo\n')
      await workspace.goToLine(1)
      await workbench.page.keyboard.type(' mine')
      await workspace.remove('gone.txt')
      await mine(workbench).waitFor()
      expect(await workbench.page.locator('.cm-merge-revert button').filter({ visible: true }).count()).toBe(
        0,
      )
    })

    test('applies single changes from disk', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      await workspace.show('merge.txt', LONG)
      await workspace.goToLine(2)
      await page.keyboard.type(' mine')
      await workspace.write(
        'merge.txt',
        LONG.replace('line 6\n', 'line six\n').replace('line 9\n', 'line nine\n'),
      )
      await mine(workbench).waitFor()
      const take = page.getByRole('button', { name: 'Use this change from disk' })
      await eventually(async () => (await take.count()) === 3, { what: 'three changes' })
      await take.nth(2).click()
      await mine(workbench).getByText('line nine').waitFor()
      await take.nth(1).press('Enter')
      await mine(workbench).getByText('line six').waitFor()
      await page.getByRole('button', { name: 'Keep mine' }).click()
      await banner(workbench).waitFor({ state: 'detached' })
      const lines = (await workspace.read('merge.txt')).split('\n')
      expect([lines[1], lines[5], lines[8]]).toEqual(['line 2 mine', 'line six', 'line nine'])
    })

    test('keeps its scroll position in a file that changes on disk', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      await workspace.show('log.txt', LONG)
      await workspace.goToLine(300)
      const before = await heightOf(editor(workbench), 'line 300')
      await workspace.write('log.txt', `${LONG}one more\n`)
      await workspace.write('log.txt', `first\n${LONG}one more\n`)
      await workbench.page.keyboard.press('Shift')
      await eventually(
        async () => (await workbench.page.locator('.cm-activeLineGutter').first().innerText()) === '301',
        {
          what: 'the new text',
        },
      )
      await isAtHeight(editor(workbench), 'line 300', before)
      await workbench.page.keyboard.type('!')
      await editor(workbench).locator('.cm-line').getByText('line 300!', { exact: true }).waitFor()
    })

    test('keeps its scroll position in a diff that changes', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      const changed = LONG.replaceAll(/line (\d*[02468]0)\n/g, 'changed $1\n')
      await workspace.write('log.txt', LONG)
      await workbench.first.read(
        'rm -rf .git; git init -q .; git config user.email a@b.c; git config user.name A; git add log.txt; git commit -qm First',
      )
      await workspace.write('log.txt', changed)
      await page.keyboard.press('Control+Shift+Y')
      await page.getByRole('complementary').getByText('log.txt').first().click()
      await page.locator('.compare .cm-content').first().waitFor()
      for (const [name, more] of Object.entries({ beside: 'first\n', inline: 'first\nsecond\n' })) {
        if (name === 'inline') await page.getByRole('button', { name: 'Inline' }).click()
        await page.locator('.compare .cm-content').last().waitFor()
        await page.locator('.editor.compare').hover()
        await page.mouse.wheel(0, 2_000)
        /** Position of a line on the right side, or of the first visible one. */
        const look = (text?: string): Promise<{ text: string; top: number; height: number } | undefined> =>
          page.locator('.editor.compare').evaluate((element, wanted) => {
            const scrollers = [element, ...element.querySelectorAll('.cm-scroller')]
            const scroller = scrollers.find(({ scrollTop }) => scrollTop > 1_500)
            const lines =
              [...element.querySelectorAll('.cm-content')].at(-1)?.querySelectorAll('.cm-line') ?? []
            const [found] = [...lines]
              .map((line) => ({ text: line.textContent, top: line.getBoundingClientRect().top }))
              .filter((line) => (wanted === undefined ? line.top > 100 : line.text === wanted))
            return found && scroller && { ...found, height: scroller.scrollHeight }
          }, text)
        const before = await eventually(() => look(), { what: `the scroll ${name}` })
        await workspace.write('log.txt', `${more}${changed}${more}`)
        const after = await eventually(
          async () => {
            const now = await look(before.text)
            return now !== undefined && now.height !== before.height && now
          },
          { what: `the new text ${name}` },
        )
        expect(Math.abs(after.top - before.top)).toBeLessThan(3)
      }
      expect(workbench.errors).toEqual([])
    })

    test('keeps byte order mark and line endings', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      await workspace.show('mark.txt', '\u{feff}one\r\ntwo\r\n')
      await editor(workbench).click()
      await page.keyboard.press('Control+Home')
      await page.keyboard.type('N')
      await page.keyboard.press('Enter')
      await page.evaluate(() => navigator.clipboard.writeText('a\nb\n'))
      await page.keyboard.press('Control+V')
      await page.keyboard.press('Control+S')
      await tab(workbench, /^mark.txt$/).waitFor()
      expect(await workspace.read('mark.txt')).toBe('\u{feff}N\r\na\r\nb\r\none\r\ntwo\r\n')
    })

    test.each(['dark', 'light'] as const)('has a readable search bar (%s)', async (theme) => {
      await using workspace = await EditedWorkspace.open(fixture, { colorScheme: theme })
      const { workbench } = workspace
      const { page } = workbench
      await page.evaluate((name) => (document.documentElement.dataset['theme'] = name), theme)
      await workspace.show('find.txt', 'alpha beta')
      await editor(workbench).click()
      await page.keyboard.press('Control+F')
      const bar = page.locator('.cm-search')
      await bar.waitFor()
      const parts = await bar.locator('input, button, label').evaluateAll((elements) =>
        elements.map((element) => {
          const { width, height } = element.getBoundingClientRect()
          const name = `${element.tagName} ${element.getAttribute('name') ?? element.textContent}`
          const isBox = element instanceof HTMLInputElement && element.type === 'checkbox'
          // A checkbox is reached by its label.
          const isLarge = isBox || (width >= 24 && height >= 24)
          return { name, isLarge, isReadable: Number.parseFloat(getComputedStyle(element).fontSize) >= 12 }
        }),
      )
      expect(parts.filter(({ isLarge, isReadable }) => !isLarge || !isReadable)).toEqual([])
      const colors = await page.evaluate(() => {
        const probe = document.body.appendChild(document.createElement('i'))
        probe.style.color = 'var(--line)'
        const line = getComputedStyle(probe).color
        probe.remove()
        const panels = document.querySelector('.cm-panels')
        return [line, panels === null ? '' : getComputedStyle(panels).borderBottomColor]
      })
      expect(colors[1]).toBe(colors[0])
    })
  },
)
