import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import type { Locator } from 'playwright-core'
import { findBrowserProblem } from './support/browser.ts'
import { type Desk, WorkbenchScene } from './support/workbench.ts'

const obstacle = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)
const WAIT = { timeoutMs: 40_000 }

describe.skipIf(obstacle !== undefined)(
  `files in the workbench${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let scene: WorkbenchScene
    beforeAll(async () => {
      scene = await WorkbenchScene.open()
    }, 120_000)

    const editor = (desk: Desk): Locator => desk.page.locator('.cm-content:visible')
    const question = (desk: Desk): Locator => desk.page.getByRole('dialog', { name: /^Save changes to / })
    const tab = (desk: Desk, name: string | RegExp): Locator => desk.page.getByRole('tab', { name })

    async function openFiles(desk: Desk): Promise<void> {
      await desk.page
        .getByRole('navigation', { name: 'Panels' })
        .getByRole('button', { name: 'Files', exact: true })
        .click()
      await desk.page.getByRole('tree').waitFor()
    }

    async function edit(desk: Desk, name: string, typed: string): Promise<void> {
      await desk.page.getByRole('treeitem', { name }).click()
      await editor(desk).click()
      await desk.page.keyboard.type(typed)
      await tab(desk, new RegExp(`^${name}.*Unsaved`)).waitFor()
    }

    /** A desk with files in its workspace and the list of them. */
    async function openDesk(files: Readonly<Record<string, string>>): Promise<Desk> {
      const desk = await scene.openDesk()
      for (const [name, text] of Object.entries(files))
        await desk.first.read(`rm -rf ${name}; printf '${text}' > ${name}`)
      await openFiles(desk)
      return desk
    }

    test('are not closed with unsaved text unless the person says so', async () => {
      await using desk = await openDesk({ 'one.txt': 'one', 'two.txt': 'two' })
      const { page } = desk
      await edit(desk, 'one.txt', 'A')
      for (const close of [
        () => page.keyboard.press('Control+Shift+X'),
        () => tab(desk, /one/).click({ button: 'middle' }),
        () =>
          page
            .locator('.tab.active')
            .getByRole('button', { name: /^Close / })
            .click(),
      ]) {
        await close()
        await question(desk).getByRole('button', { name: 'Cancel' }).click()
        expect(await editor(desk).innerText()).toContain('A')
      }
      // A pane that is drawn in another place keeps its text, and is asked about with the others of its tab.
      await desk.command('Split right')
      await desk.first.ready()
      expect(await editor(desk).innerText()).toContain('A')
      await page
        .locator('.tab.active')
        .getByRole('button', { name: /^Close / })
        .click()
      await question(desk).getByRole('button', { name: 'Save' }).click()
      await eventually(async () => (await tab(desk, /./).count()) === 1, { what: 'the end of it', ...WAIT })
      expect(await desk.first.read('cat one.txt')).toContain('A')

      await edit(desk, 'two.txt', 'B')
      await page.keyboard.press('Control+Shift+X')
      await question(desk).getByRole('button', { name: 'Discard' }).click()
      await tab(desk, /two/).waitFor({ state: 'detached' })
      expect(await desk.first.read('cat two.txt')).toBe('two')
      expect(desk.errors).toEqual([])
    }, 60_000)

    test('with unsaved text hold back a sign-out until the person says so', async () => {
      await using desk = await openDesk({ 'three.txt': 'three' })
      const { page } = desk
      const sent: string[] = []
      page.on('request', (request) => sent.push(new URL(request.url()).pathname))
      await page.route('**/api/signout', (route) => route.fulfill({ status: 204 }))
      await edit(desk, 'three.txt', 'C')
      await desk.button('Sign out').click()
      await question(desk).getByRole('button', { name: 'Cancel' }).click()
      expect(sent).not.toContain('/api/signout')
      expect(await editor(desk).innerText()).toContain('C')
      await desk.button('Sign out').click()
      await question(desk).getByRole('button', { name: 'Discard' }).click()
      await eventually(() => sent.includes('/api/signout'), { what: 'the sign-out', ...WAIT })
    }, 60_000)

    test('are saved without a keyboard, or by the name of the command', async () => {
      await using desk = await openDesk({ 'four.txt': 'four' })
      const { page } = desk
      await edit(desk, 'four.txt', 'D')
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await tab(desk, /^four.txt$/).waitFor()
      await editor(desk).click()
      await page.keyboard.type('E')
      await tab(desk, /Unsaved/).waitFor()
      await desk.command('Save file')
      await tab(desk, /^four.txt$/).waitFor()
      await page.keyboard.press('Control+Shift+X')
      await tab(desk, /four/).waitFor({ state: 'detached' })
      expect(await desk.first.read('cat four.txt')).toMatch(/^(?=.*D)(?=.*E)/)
    }, 60_000)

    /** Drops a file as from a desktop; answers whether the page keeps the browser from opening it. */
    function dropFile(place: Locator, name: string): Promise<boolean> {
      return place.evaluate((element, fileName) => {
        const dataTransfer = new DataTransfer()
        dataTransfer.items.add(new File(['dropped'], fileName))
        const options = { bubbles: true, cancelable: true, dataTransfer }
        const isTaken = !element.dispatchEvent(new DragEvent('dragover', options))
        return !element.dispatchEvent(new DragEvent('drop', options)) && isTaken
      }, name)
    }

    test('are uploaded by a button, from a folder menu and by a drop anywhere', async () => {
      await using desk = await openDesk({})
      const { page } = desk
      await desk.first.read('rm -rf *; mkdir folder')
      await page.getByRole('treeitem', { name: 'folder' }).waitFor()
      const upload = async (choose: () => Promise<void>, names: readonly string[]): Promise<void> => {
        const [chooser] = await Promise.all([page.waitForEvent('filechooser'), choose()])
        await chooser.setFiles(
          names.map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(name) })),
        )
        await desk.button('Upload').last().click()
        await page.getByText(/^Uploaded/).waitFor()
        expect(await page.getByText(/^Uploading/).count()).toBe(0)
        await desk.button('Dismiss').click()
      }
      await upload(() => desk.button('Upload files').click(), ['a.txt', 'b.txt'])
      await page.getByRole('treeitem', { name: 'folder' }).click({ button: 'right' })
      await upload(() => page.getByRole('menuitem', { name: 'Upload files…' }).click(), ['c.txt'])

      for (const [place, name] of [
        [page.locator('.drop-place'), 'd.txt'],
        [desk.first.element, 'e.txt'],
        [page.getByRole('navigation'), 'f.txt'],
      ] as const) {
        expect(await dropFile(place, name)).toBe(true)
        await page
          .getByRole('dialog', { name: `Upload ${name}?` })
          .getByText('To the workspace of dev.')
          .waitFor()
        await desk.button('Upload').last().click()
        await page.getByRole('treeitem', { name }).waitFor()
      }
      expect(await desk.first.read('ls -m . folder')).toContain('a.txt, b.txt, d.txt, e.txt, f.txt, folder')
      expect(await desk.first.read('cat folder/c.txt d.txt')).toBe('c.txtdropped')
      expect(desk.errors).toEqual([])
    }, 60_000)

    test('that are large say how far their upload is, and stop when they are told to', async () => {
      await using desk = await openDesk({})
      const { page } = desk
      await desk.first.read('rm -rf *')
      // A link on which a hundred megabytes take minutes.
      const devTools = await desk.context.newCDPSession(page)
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
        document.querySelector('.drop-place')?.dispatchEvent(new DragEvent('drop', options))
      })
      await desk.button('Upload').last().click()
      const progress = page.getByRole('progressbar', { name: 'Uploading large.bin' })
      await progress.waitFor()
      const shares = new Set<number>()
      await eventually(
        async () => {
          shares.add(await progress.evaluate((element: HTMLProgressElement) => element.position))
          return shares.size >= 3
        },
        { what: 'the upload to go on', ...WAIT },
      )
      expect(Math.max(...shares)).toBeLessThan(1)
      await desk.button('Cancel upload').click()
      await page.getByText('Canceled: 0 of 1 file uploaded').waitFor()
      expect(await progress.count()).toBe(0)
      expect(await desk.first.read('ls -A')).toBe('')
      expect(desk.errors).toEqual([])
    }, 60_000)

    test('are followed when they are moved in the list, with what was typed and what can be undone', async () => {
      await using desk = await openDesk({ 'before.txt': 'one' })
      const { page } = desk
      await edit(desk, 'before.txt', 'A')
      const row = page.getByRole('treeitem', { name: 'before.txt' })
      await row.focus()
      await page.keyboard.press('F2')
      await page.getByLabel('Path', { exact: true }).fill('after.txt')
      await page.keyboard.press('Enter')
      await tab(desk, /^after.txt.*Unsaved/).waitFor()
      await row.waitFor({ state: 'detached' })
      expect(await page.locator('.banner.conflict').count()).toBe(0)
      await editor(desk).click()
      await page.keyboard.press('Control+Z')
      await tab(desk, /^after.txt$/).waitFor()
      expect(await editor(desk).innerText()).toBe('one')
      await page.keyboard.press('Control+Home')
      await page.keyboard.type('B')
      await page.keyboard.press('Control+S')
      await tab(desk, /^after.txt$/).waitFor()
      await tab(desk, /dev/).first().click()
      expect(await desk.first.read('ls; cat after.txt')).toContain('Bone')

      // What goes elsewhere is said in words that fit who changed nothing.
      await desk.first.read('mv after.txt elsewhere.txt')
      await tab(desk, 'after.txt').click()
      await page.getByText('The file was deleted or moved. This is its last text.').waitFor()
    }, 60_000)

    test('are edited with the keys of the editor, which the page takes neither there nor behind a dialog', async () => {
      await using desk = await openDesk({ 'five.txt': 'alpha beta' })
      const { page } = desk
      await page.getByRole('treeitem', { name: 'five.txt' }).click()
      await desk.command('Split right')
      await desk.first.ready()
      await editor(desk).click()
      await page.keyboard.press('Control+Home')
      await page.keyboard.press('Control+Shift+ArrowRight')
      expect(await page.evaluate(() => String(getSelection()))).toBe('alpha')
      await page.keyboard.type('gamma')
      expect(await editor(desk).innerText()).toBe('gamma beta')

      await desk.command('Settings')
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
      expect(await question(desk).count()).toBe(0)
      expect(await editor(desk).innerText()).toBe('gamma beta')
      await page.keyboard.press('Control+Shift+X')
      await question(desk).waitFor()
    }, 60_000)

    test('keep the keyboard in their list when its menu is closed', async () => {
      await using desk = await openDesk({ 'six.txt': 'six' })
      const { page } = desk
      const row = page.getByRole('treeitem', { name: 'six.txt' })
      const hasKeyboard = (): Promise<void> => row.and(page.locator(':focus')).waitFor({ timeout: 10_000 })
      await row.focus()
      await page.keyboard.press('Shift+F10')
      await page.getByRole('menu').waitFor()
      // The list behind it is drawn anew.
      const [sandbox = ''] = (await desk.first.session()).split('.')
      await scene.host.fetch(`/api/workspaces/${sandbox}/file?path=seven.txt`, { method: 'PUT', body: '7' })
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
    }, 60_000)

    test('that are deleted or moved by keys leave the keyboard in their list', async () => {
      await using desk = await openDesk({})
      const { page } = desk
      await desk.first.read('rm -rf *; mkdir in; touch a.txt b.txt c.txt d.txt in/only.txt')
      const row = (name: string): Locator => page.getByRole('treeitem', { name, exact: true })
      const hasKeyboard = (name: string): Promise<void> =>
        row(name).and(page.locator(':focus')).waitFor({ timeout: 10_000 })
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
      await hasKeyboard('a.txt')
      expect(desk.errors).toEqual([])
    }, 60_000)

    test('are named, searched and shown with words for what is wrong', async () => {
      await using desk = await openDesk({})
      const { page } = desk
      const long = `for i in $(seq 200); do printf 'word '; done > long.txt; echo needle >> long.txt`
      await desk.first.read(`rm -rf *; printf x > $'new\\nline.txt'; printf broken > broken.png; ${long}`)
      await page.getByRole('treeitem', { name: 'new (new line) line.txt' }).waitFor()
      await page.getByRole('treeitem', { name: 'broken.png' }).click()
      await page.getByText('Cannot show this image').waitFor()

      await desk.button('New file').click()
      await page.getByLabel('Path', { exact: true }).fill('long.txt')
      await page.keyboard.press('Enter')
      const refused = page.getByRole('dialog', { name: 'New file' })
      await refused.getByText('Cannot create long.txt: it already exists').waitFor()
      // What was typed is still there, for another name.
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
      await desk.button('Regular expression').click()
      await page.getByLabel('Search in files').last().fill('(')
      await page.getByText(/^Cannot search for this: /).waitFor()
    }, 60_000)
  },
)
