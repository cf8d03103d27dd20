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
const PHONE = { width: 390, height: 844 }

describe.skipIf(problem !== undefined)(
  `a conflict in the editor of the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    /** Opens a file that changed on disk while text was typed at its end. */
    async function openConflict(path: string, before: string, theirs: string): Promise<EditedWorkspace> {
      const workspace = await EditedWorkspace.open(fixture)
      await workspace.show(path, before)
      await editor(workspace.workbench).click()
      await workspace.workbench.page.keyboard.press('Control+End')
      await workspace.workbench.page.keyboard.type('mine')
      await workspace.write(path, theirs)
      await mine(workspace.workbench).waitFor()
      return workspace
    }

    test('is not ended by Ctrl+S, which offers the choices', async () => {
      await using workspace = await openConflict('save.txt', 'one\n', 'theirs\n')
      const { workbench } = workspace
      const { page } = workbench
      await page.keyboard.press('Control+S')
      await banner(workbench).getByText('Not saved: choose a version.').waitFor()
      await page.getByRole('button', { name: 'Next change' }).and(page.locator(':focus')).waitFor()
      // Confirming blindly changes nothing on disk.
      await page.keyboard.press('Enter')
      expect(await workspace.read('save.txt')).toBe('theirs\n')
      await mine(workbench).and(page.locator(':focus')).waitFor()
      await workbench.command('Save file')
      await page.getByRole('button', { name: 'Next change' }).and(page.locator(':focus')).waitFor()
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await tab(workbench, /^save.txt$/).waitFor()
      expect(await workspace.read('save.txt')).toBe('one\nmine')
      expect(workbench.errors).toEqual([])
    })

    test('has readable text and large enough buttons on a phone', async () => {
      await using workspace = await openConflict('phone.txt', 'one\n', 'theirs\n')
      const { workbench } = workspace
      await workbench.page.setViewportSize(PHONE)
      await workbench.button('Close panel').click()
      const look = (): Promise<{ words: number; buttons: DOMRect[]; height: number; left: number }> =>
        banner(workbench).evaluate((element) => ({
          words: element.querySelector('span')?.getBoundingClientRect().width ?? 0,
          buttons: [...element.querySelectorAll('button')].map((button) => button.getBoundingClientRect()),
          height: element.getBoundingClientRect().height,
          left: element.getBoundingClientRect().left,
        }))
      await eventually(async () => (await look()).left === 0, { what: 'the narrow page' })
      const { words, buttons, height } = await look()
      expect(words).toBeGreaterThan(300)
      expect(height).toBeLessThan(110)
      expect(buttons.map(({ right, height: own }) => right <= PHONE.width && own >= 24 && own < 45)).toEqual([
        true,
        true,
        true,
      ])
    })

    test('with a folder at the path of the file loses no typed text', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      await workspace.show('was.txt', 'one\n')
      await workbench.command('Split right')
      await workbench.first.ready()
      await workbench.first.read('rm was.txt; mkdir was.txt')
      await banner(workbench).getByText('A folder has taken the place of this file.').waitFor()
      await mine(workbench).click()
      await page.keyboard.press('Control+Home')
      await page.keyboard.type('typed ')
      await page.keyboard.press('Control+S')
      await page.getByRole('button', { name: 'Copy mine' }).and(page.locator(':focus')).waitFor()
      await page.keyboard.press('Enter')
      await page.getByText('Copied').waitFor()
      expect(await workbench.clipboard()).toBe('typed one\n')
      await workbench.first.read('rmdir was.txt; mkfifo was.txt')
      await banner(workbench).getByText('This is no longer a regular file.').waitFor()
      await workbench.first.read('rm was.txt')
      await banner(workbench).getByText('The file was deleted or moved while you were editing it.').waitFor()
      await workbench.button('Create it again').click()
      await banner(workbench).waitFor({ state: 'detached' })
      expect(await workspace.read('was.txt')).toBe('typed one\n')
      expect(workbench.errors).toEqual([])
    })

    test('waits for the end of a composition', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      await workspace.show('word.txt', 'one\n')
      await editor(workbench).click()
      await page.keyboard.press('Control+End')
      await page.keyboard.type('x')
      const devTools = await workbench.context.newCDPSession(page)
      const compose = (text: string): Promise<unknown> =>
        devTools.send('Input.imeSetComposition', {
          text,
          selectionStart: text.length,
          selectionEnd: text.length,
        })
      for (const text of ['n', 'に', 'にh', 'にほ']) await compose(text)
      await workspace.write('word.txt', 'theirs\n')
      // Changes arrive in order, so the page knows of the first when it shows the second.
      await workspace.write('later.txt', '')
      await page.getByRole('treeitem', { name: 'later.txt' }).waitFor()
      // Time for the page to read the file, which it does not while an earlier read waits for the composition.
      await page.evaluate(async () => {
        for (let frame = 0; frame < 10; frame += 1)
          await new Promise((resolve) => requestAnimationFrame(resolve))
      })
      for (const text of ['にほn', 'にほん']) await compose(text)
      expect(await banner(workbench).count()).toBe(0)
      expect(await editor(workbench).innerText()).toBe('one\nxにほん')
      await devTools.send('Input.insertText', { text: '日本' })
      await mine(workbench).waitFor()
      expect(await mine(workbench).locator('.cm-line').allInnerTexts()).toEqual(['one', 'x日本'])
      await page.keyboard.type('!')
      expect(await mine(workbench).locator('.cm-line').last().innerText()).toBe('x日本!')
      expect(workbench.errors).toEqual([])
    })

    test('ends when all typed text is undone, which can be redone', async () => {
      await using workspace = await openConflict('undo.txt', 'one\ntwo\n', 'theirs\none\ntwo\n')
      const { workbench } = workspace
      const { page } = workbench
      await page.keyboard.press('Control+Z')
      await banner(workbench).waitFor({ state: 'detached' })
      await tab(workbench, /^undo.txt$/).waitFor()
      expect(await editor(workbench).locator('.cm-line').allInnerTexts()).toEqual([
        'theirs',
        'one',
        'two',
        '\n',
      ])
      await page.keyboard.press('Control+Shift+Z')
      await tab(workbench, /^undo.txt.*Unsaved/).waitFor()
      await page.keyboard.press('Control+S')
      await tab(workbench, /^undo.txt$/).waitFor()
      expect(await workspace.read('undo.txt')).toBe('theirs\none\ntwo\nmine')
      expect(workbench.errors).toEqual([])
    })

    test('keeps its scroll position when an undo coincides with a change on disk', async () => {
      const long = Array.from({ length: 600 }, (_, at) => `line ${at + 1}\n`).join('')
      await using workspace = await openConflict('still.txt', long, long.replace('line 310', 'theirs'))
      const { workbench } = workspace
      const { page } = workbench
      await workspace.goToLine(300)
      // Longer than a line.
      const typed = 'abcdefghijklmnopqrstuvwxyz'
      await page.keyboard.type(typed)
      const before = await heightOf(mine(workbench), `line 300${typed}`)
      await page.evaluate(() => {
        const undo = new KeyboardEvent('keydown', {
          key: 'z',
          ctrlKey: true,
          bubbles: true,
          cancelable: true,
        })
        const left = document.querySelector('.cm-merge-a .cm-content')
        const observer = new MutationObserver(() => {
          if (left?.textContent.includes('another') !== true) return
          observer.disconnect()
          document.querySelector('.cm-merge-b .cm-content')?.dispatchEvent(undo)
        })
        if (left !== null) observer.observe(left, { childList: true, characterData: true, subtree: true })
      })
      await workspace.write('still.txt', long.replace('line 290', 'another'))
      await mine(workbench).locator('.cm-line').getByText('line 300', { exact: true }).waitFor()
      await page.evaluate(async () => {
        for (let frame = 0; frame < 10; frame += 1)
          await new Promise((resolve) => requestAnimationFrame(resolve))
      })
      await isAtHeight(mine(workbench), 'line 300', before)
    })

    test('reports invisible differences', async () => {
      await using workspace = await openConflict('ends.txt', 'one\n', 'one\r\nmine!')
      const { workbench } = workspace
      await banner(workbench).getByText('Line endings differ as well: CRLF on disk, LF in yours.').waitFor()
      await workspace.write('ends.txt', 'one\r\nmine.')
      await mine(workbench).click()
      await workbench.page.keyboard.press('Control+End')
      await workbench.page.keyboard.type('.')
      await banner(workbench).getByText('Only line endings differ: CRLF on disk, LF in yours.').waitFor()
      await workbench.page.keyboard.type('.')
      await banner(workbench).getByText('Line endings differ as well').waitFor()
    })

    test('keeps the search bar open and the focus elsewhere', async () => {
      await using workspace = await EditedWorkspace.open(fixture)
      const { workbench } = workspace
      const { page } = workbench
      await workspace.show('bar.txt', 'one\n')
      await editor(workbench).click()
      await page.keyboard.type('mine ')
      await page.keyboard.press('Control+F')
      await page.keyboard.type('on')
      await page.keyboard.press('Control+Shift+F')
      const field = page.getByLabel('Search in files').last()
      await field.fill('word')
      await field.evaluate((element) => {
        element.addEventListener('blur', () => element.setAttribute('data-left', 'yes'))
      })
      const find = page.getByLabel('Find', { exact: true })
      await workspace.write('bar.txt', 'theirs\n')
      await mine(workbench).waitFor()
      expect(await find.inputValue()).toBe('on')
      await page.keyboard.type('s')
      await workspace.write('bar.txt', 'one\n')
      await banner(workbench).waitFor({ state: 'detached' })
      expect(await find.inputValue()).toBe('on')
      await page.keyboard.type('!')
      expect([await field.inputValue(), await field.getAttribute('data-left')]).toEqual(['words!', null])
      expect(workbench.errors).toEqual([])
    })
  },
)
