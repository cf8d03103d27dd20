import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import type { Locator } from 'playwright-core'
import { findBrowserProblem } from './support/browser.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)

describe.skipIf(problem !== undefined)(
  `files in the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    const editor = (workbench: WorkbenchPage): Locator => workbench.page.locator('.cm-content:visible')
    const question = (workbench: WorkbenchPage): Locator =>
      workbench.page.getByRole('dialog', { name: /^Save changes to / })
    const tab = (workbench: WorkbenchPage, name: string | RegExp): Locator =>
      workbench.page.getByRole('tab', { name })

    async function openFiles(workbench: WorkbenchPage): Promise<void> {
      await workbench.page
        .getByRole('navigation', { name: 'Panels' })
        .getByRole('button', { name: 'Files', exact: true })
        .click()
      await workbench.page.getByRole('tree').waitFor()
    }

    async function edit(workbench: WorkbenchPage, name: string, typed: string): Promise<void> {
      await workbench.page.getByRole('treeitem', { name }).click()
      await editor(workbench).click()
      await workbench.page.keyboard.type(typed)
      await tab(workbench, new RegExp(`^${name}.*Unsaved`)).waitFor()
    }

    /** Opens a page with files in its workspace and the files panel. */
    async function openPage(files: Readonly<Record<string, string>>): Promise<WorkbenchPage> {
      const workbench = await fixture.openPage()
      for (const [name, text] of Object.entries(files))
        await workbench.first.read(`rm -rf ${name}; printf '${text}' > ${name}`)
      await openFiles(workbench)
      return workbench
    }

    test('are not closed with unsaved text without confirmation', async () => {
      await using workbench = await openPage({ 'one.txt': 'one', 'two.txt': 'two' })
      const { page } = workbench
      await edit(workbench, 'one.txt', 'A')
      for (const close of [
        () => page.keyboard.press('Control+Shift+X'),
        () => tab(workbench, /one/).click({ button: 'middle' }),
        () =>
          page
            .locator('.tab.active')
            .getByRole('button', { name: /^Close / })
            .click(),
      ]) {
        await close()
        await question(workbench).getByRole('button', { name: 'Cancel' }).click()
        expect(await editor(workbench).innerText()).toContain('A')
      }
      // A pane that moves in the layout keeps its text, and is confirmed with the others of its tab.
      await workbench.command('Split right')
      await workbench.first.ready()
      expect(await editor(workbench).innerText()).toContain('A')
      await page
        .locator('.tab.active')
        .getByRole('button', { name: /^Close / })
        .click()
      await question(workbench).getByRole('button', { name: 'Save' }).click()
      await eventually(async () => (await tab(workbench, /./).count()) === 1, {
        what: 'the end of it',
      })
      expect(await workbench.first.read('cat one.txt')).toContain('A')

      await edit(workbench, 'two.txt', 'B')
      await page.keyboard.press('Control+Shift+X')
      await question(workbench).getByRole('button', { name: 'Discard' }).click()
      await tab(workbench, /two/).waitFor({ state: 'detached' })
      expect(await workbench.first.read('cat two.txt')).toBe('two')
      expect(workbench.errors).toEqual([])
    })

    test('with unsaved text delay a sign-out until confirmed', async () => {
      await using workbench = await openPage({ 'three.txt': 'three' })
      const { page } = workbench
      const sent: string[] = []
      page.on('request', (request) => sent.push(new URL(request.url()).pathname))
      await page.route('**/api/signout', (route) => route.fulfill({ status: 204 }))
      await edit(workbench, 'three.txt', 'C')
      await workbench.button('Sign out').click()
      await question(workbench).getByRole('button', { name: 'Cancel' }).click()
      expect(sent).not.toContain('/api/signout')
      expect(await editor(workbench).innerText()).toContain('C')
      await workbench.button('Sign out').click()
      await question(workbench).getByRole('button', { name: 'Discard' }).click()
      await eventually(() => sent.includes('/api/signout'), { what: 'the sign-out' })
    })

    test('are saved by button or by command', async () => {
      await using workbench = await openPage({ 'four.txt': 'four' })
      const { page } = workbench
      await edit(workbench, 'four.txt', 'D')
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await tab(workbench, /^four.txt$/).waitFor()
      await editor(workbench).click()
      await page.keyboard.type('E')
      await tab(workbench, /Unsaved/).waitFor()
      await workbench.command('Save file')
      await tab(workbench, /^four.txt$/).waitFor()
      await page.keyboard.press('Control+Shift+X')
      await tab(workbench, /four/).waitFor({ state: 'detached' })
      expect(await workbench.first.read('cat four.txt')).toMatch(/^(?=.*D)(?=.*E)/)
    })

    /** Drops a file; returns whether the page prevents the browser's default. */
    function dropFile(place: Locator, name: string): Promise<boolean> {
      return place.evaluate((element, fileName) => {
        const dataTransfer = new DataTransfer()
        dataTransfer.items.add(new File(['dropped'], fileName))
        const options = { bubbles: true, cancelable: true, dataTransfer }
        const isTaken = !element.dispatchEvent(new DragEvent('dragover', options))
        return !element.dispatchEvent(new DragEvent('drop', options)) && isTaken
      }, name)
    }

    test('are uploaded by button, folder menu and drop', async () => {
      await using workbench = await openPage({})
      const { page } = workbench
      await workbench.first.read('rm -rf *; mkdir folder')
      await page.getByRole('treeitem', { name: 'folder' }).waitFor()
      const upload = async (choose: () => Promise<void>, names: readonly string[]): Promise<void> => {
        const [chooser] = await Promise.all([page.waitForEvent('filechooser'), choose()])
        await chooser.setFiles(
          names.map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(name) })),
        )
        await workbench.button('Upload').last().click()
        await page.getByText(/^Uploaded/).waitFor()
        expect(await page.getByText(/^Uploading/).count()).toBe(0)
        await workbench.button('Dismiss').click()
      }
      await upload(() => workbench.button('Upload files').click(), ['a.txt', 'b.txt'])
      await page.getByRole('treeitem', { name: 'folder' }).click({ button: 'right' })
      await upload(() => page.getByRole('menuitem', { name: 'Upload files…' }).click(), ['c.txt'])

      for (const [place, name] of [
        [page.locator('.drop-target'), 'd.txt'],
        [workbench.first.element, 'e.txt'],
        [page.getByRole('navigation'), 'f.txt'],
      ] as const) {
        expect(await dropFile(place, name)).toBe(true)
        await page
          .getByRole('dialog', { name: `Upload ${name}?` })
          .getByText('To the workspace of dev.')
          .waitFor()
        await workbench.button('Upload').last().click()
        await page.getByRole('treeitem', { name }).waitFor()
      }
      expect(await workbench.first.read('ls -m . folder')).toContain(
        'a.txt, b.txt, d.txt, e.txt, f.txt, folder',
      )
      expect(await workbench.first.read('cat folder/c.txt d.txt')).toBe('c.txtdropped')
      expect(workbench.errors).toEqual([])
    })

    test('that are large show upload progress and can be canceled', async () => {
      await using workbench = await openPage({})
      const { page } = workbench
      await workbench.first.read('rm -rf *')
      // At this rate 100 MB take minutes.
      const devTools = await workbench.context.newCDPSession(page)
      const bytesPerSecond = 2_000_000
      await devTools.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput: bytesPerSecond,
      })
      await page.evaluate(() => {
        const dataTransfer = new DataTransfer()
        dataTransfer.items.add(new File([new Uint8Array(100_000_000)], 'large.bin'))
        const options = { bubbles: true, cancelable: true, dataTransfer }
        document.querySelector('.drop-target')?.dispatchEvent(new DragEvent('drop', options))
      })
      await workbench.button('Upload').last().click()
      const progress = page.getByRole('progressbar', { name: 'Uploading large.bin' })
      await progress.waitFor()
      const shares = new Set<number>()
      await eventually(
        async () => {
          shares.add(await progress.evaluate((element: HTMLProgressElement) => element.position))
          return shares.size >= 3
        },
        { what: 'the upload to go on' },
      )
      expect(Math.max(...shares)).toBeLessThan(1)
      await workbench.button('Cancel upload').click()
      await page.getByText('Canceled: 0 of 1 file uploaded').waitFor()
      expect(await progress.count()).toBe(0)
      expect(await workbench.first.read('ls -A')).toBe('')
      expect(workbench.errors).toEqual([])
    })

    test('that are moved keep their unsaved text and undo history in the editor', async () => {
      await using workbench = await openPage({ 'before.txt': 'one' })
      const { page } = workbench
      await edit(workbench, 'before.txt', 'A')
      const row = page.getByRole('treeitem', { name: 'before.txt' })
      await row.focus()
      await page.keyboard.press('F2')
      await page.getByLabel('Path', { exact: true }).fill('after.txt')
      await page.keyboard.press('Enter')
      await tab(workbench, /^after.txt.*Unsaved/).waitFor()
      await row.waitFor({ state: 'detached' })
      expect(await page.locator('.banner.conflict').count()).toBe(0)
      await editor(workbench).click()
      await page.keyboard.press('Control+Z')
      await tab(workbench, /^after.txt$/).waitFor()
      expect(await editor(workbench).innerText()).toBe('one')
      await page.keyboard.press('Control+Home')
      await page.keyboard.type('B')
      await page.keyboard.press('Control+S')
      await tab(workbench, /^after.txt$/).waitFor()
      await tab(workbench, /dev/).first().click()
      expect(await workbench.first.read('ls; cat after.txt')).toContain('Bone')

      // Without unsaved changes the message is another one.
      await workbench.first.read('mv after.txt foreign.txt')
      await tab(workbench, 'after.txt').click()
      await page.getByText('The file was deleted or moved. This is its last text.').waitFor()
    })

    test('are edited with keys that no page shortcut intercepts, also behind a dialog', async () => {
      await using workbench = await openPage({ 'five.txt': 'alpha beta' })
      const { page } = workbench
      await page.getByRole('treeitem', { name: 'five.txt' }).click()
      await workbench.command('Split right')
      await workbench.first.ready()
      await editor(workbench).click()
      await page.keyboard.press('Control+Home')
      await page.keyboard.press('Control+Shift+ArrowRight')
      expect(await page.evaluate(() => String(getSelection()))).toBe('alpha')
      await page.keyboard.type('gamma')
      expect(await editor(workbench).innerText()).toBe('gamma beta')

      await workbench.command('Settings')
      const settings = page.getByRole('dialog', { name: 'Settings' })
      const font = settings.getByLabel('Terminal font')
      await font.fill('Some Font')
      await page.keyboard.press('Control+Shift+ArrowLeft')
      await page.keyboard.press('Control+Shift+X')
      await page.keyboard.type('Face')
      expect(await font.inputValue()).toBe('Some Face')
      await font.fill('')
      await page.keyboard.press('Escape')
      await settings.waitFor({ state: 'detached' })
      expect(await question(workbench).count()).toBe(0)
      expect(await editor(workbench).innerText()).toBe('gamma beta')
      await page.keyboard.press('Control+Shift+X')
      await question(workbench).waitFor()
    })

    test('keep the focus in their tree when its menu closes', async () => {
      await using workbench = await openPage({ 'six.txt': 'six' })
      const { page } = workbench
      const row = page.getByRole('treeitem', { name: 'six.txt' })
      const hasKeyboard = (): Promise<void> => row.and(page.locator(':focus')).waitFor()
      await row.focus()
      await page.keyboard.press('Shift+F10')
      await page.getByRole('menu').waitFor()
      // The tree behind the menu re-renders.
      const [sandbox = ''] = (await workbench.first.session()).split('.')
      await fixture.host.fetch(`/api/workspaces/${sandbox}/file?path=seven.txt`, { method: 'PUT', body: '7' })
      await page.getByRole('treeitem', { name: 'seven.txt' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('menu').waitFor({ state: 'detached' })
      await hasKeyboard()
      await page.keyboard.press('Delete')
      const remove = page.getByRole('dialog', { name: 'Delete six.txt?' })
      await remove.getByRole('button', { name: 'Cancel' }).click()
      await hasKeyboard()
      await page.keyboard.press('Shift+F10')
      await page.getByRole('menuitem', { name: 'Rename or move…' }).click()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await hasKeyboard()
    })

    test('that are deleted or moved by keys keep the focus in their tree', async () => {
      await using workbench = await openPage({})
      const { page } = workbench
      await workbench.first.read('rm -rf *; mkdir in; touch a.txt b.txt c.txt d.txt in/only.txt')
      const row = (name: string): Locator => page.getByRole('treeitem', { name, exact: true })
      const hasKeyboard = (name: string): Promise<void> => row(name).and(page.locator(':focus')).waitFor()
      const remove = async (name: string): Promise<void> => {
        await hasKeyboard(name)
        await page.keyboard.press('Delete')
        await page.getByRole('dialog', { name: `Delete ${name}?` }).waitFor()
        await page.keyboard.press('Tab')
        await page.keyboard.press('Enter')
        await row(name).waitFor({ state: 'detached' })
      }
      await row('b.txt').focus()
      await remove('b.txt')
      await hasKeyboard('c.txt')
      await page.keyboard.press('ArrowDown')
      await remove('d.txt')
      await hasKeyboard('c.txt')

      await page.keyboard.press('F2')
      await page.getByLabel('Path', { exact: true }).fill('z.txt')
      await page.keyboard.press('Enter')
      await hasKeyboard('z.txt')
      await page.keyboard.press('F2')
      await page.getByLabel('Path', { exact: true }).fill('in/moved.txt')
      await page.keyboard.press('Enter')
      await hasKeyboard('moved.txt')
      await page.keyboard.press('ArrowDown')
      await remove('only.txt')
      await remove('moved.txt')
      await remove('in')
      await remove('a.txt')
      // An empty tree has the focus itself, and its first entry gets it.
      await page.getByRole('tree').and(page.locator(':focus')).waitFor()
      const [sandbox = ''] = (await workbench.first.session()).split('.')
      await fixture.host.fetch(`/api/workspaces/${sandbox}/file?path=first.txt`, { method: 'PUT', body: '1' })
      await hasKeyboard('first.txt')
      expect(workbench.errors).toEqual([])
    })

    test('report problems with names, searches and images', async () => {
      await using workbench = await openPage({})
      const { page } = workbench
      const long = `for i in $(seq 200); do printf 'word '; done > long.txt; echo needle >> long.txt`
      await workbench.first.read(
        `rm -rf *; printf x > $'new\\nline.txt'; printf broken > broken.png; ${long}`,
      )
      await page.getByRole('treeitem', { name: 'new (new line) line.txt' }).waitFor()
      await page.getByRole('treeitem', { name: 'broken.png' }).click()
      await page.getByText('Cannot show this image').waitFor()

      await workbench.button('New file').click()
      await page.getByLabel('Path', { exact: true }).fill('long.txt')
      await page.keyboard.press('Enter')
      const refused = page.getByRole('dialog', { name: 'New file' })
      await refused.getByText('Cannot create long.txt: it already exists').waitFor()
      // The typed name stays for another attempt.
      expect(await refused.getByLabel('Path', { exact: true }).inputValue()).toBe('long.txt')
      await page.keyboard.press('Escape')
      await refused.waitFor({ state: 'detached' })

      await page.keyboard.press('Control+Shift+F')
      await page.getByLabel('Search in files').last().fill('needle')
      const [found, line] = [page.locator('.found-text mark'), page.locator('.found-text')]
      await found.waitFor()
      const [foundBox, lineBox] = [await found.boundingBox(), await line.boundingBox()]
      expect((foundBox?.x ?? 0) + (foundBox?.width ?? 0)).toBeLessThanOrEqual(
        (lineBox?.x ?? 0) + (lineBox?.width ?? 0),
      )
      await workbench.button('Regular expression').click()
      await page.getByLabel('Search in files').last().fill('(')
      await page
        .getByRole('status')
        .getByText(/^Cannot use .*"q"/)
        .waitFor()
    })
  },
)
