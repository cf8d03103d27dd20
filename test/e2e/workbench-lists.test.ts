import { beforeAll, describe, expect, test } from 'bun:test'
import { findBrowserProblem } from './support/browser.ts'
import { WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)

describe.skipIf(problem !== undefined)(
  `lists of the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    test('report an unreachable server, and recover', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      const panel = page.getByRole('complementary', { name: 'Sandboxes' })
      await panel.getByText(/running · yours · /).waitFor()
      // As if the server were stopped.
      await page.route('**/api/**', (route) => route.abort('connectionrefused'))
      await workbench.refreshLists()
      await panel.getByRole('status').getByText('Server unreachable. Retrying…').waitFor()
      await panel.getByText('was running').waitFor()
      expect(await panel.locator('.dot.running').count()).toBe(0)
      expect(await panel.getByText('Loading').count()).toBe(0)
      await page.unroute('**/api/**')
      await panel.locator('.dot.running').waitFor()
      await panel.getByRole('region', { name: 'Sessions' }).getByRole('button').first().waitFor()
      expect(await panel.getByText('Server unreachable').count()).toBe(0)
    })

    test('show an untracked folder before it is deleted, and ask for an author when git has none', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.first.run(
        'git init -q .; mkdir -p newdir/deep; echo one > newdir/deep/in.txt; echo root > root.txt; git add root.txt; echo do"ne"',
      )
      await workbench.first.waitFor('done')
      await workbench.button('Git').click()
      const panel = page.getByRole('complementary', { name: 'Git' })
      await panel.getByRole('button', { name: 'newdir new folder' }).click()
      await panel.getByRole('list', { name: 'Files in newdir' }).getByRole('button', { name: 'deep' }).click()
      await panel.getByRole('button', { name: 'in.txt' }).click()
      await page.getByRole('tab', { name: 'in.txt' }).waitFor()
      expect(await panel.getByText('root.txt').count()).toBe(1)
      await workbench.button('Discard newdir/').click()
      await page
        .getByRole('dialog', { name: 'Delete this new folder?' })
        .getByText('1 new folder and its contents')
        .waitFor()
      await page.getByRole('button', { name: 'Delete', exact: true }).click()
      await panel.getByRole('button', { name: 'newdir new folder' }).waitFor({ state: 'detached' })

      await panel.getByLabel('Commit message').fill('a first commit')
      await workbench.button('Commit').click()
      await panel.getByLabel('Your name').fill('Ann Author')
      await panel.getByLabel('Your email').fill('ann@example.test')
      await workbench.button('Commit').click()
      await panel.getByText('No changes').waitFor()
      expect(await page.locator('.notice').count()).toBe(0)
      await page.getByRole('tab').first().click()
      expect(await workbench.first.read('git --no-pager log --format="%an %ae %s"')).toBe(
        'Ann Author ann@example.test a first commit',
      )
      // The author is asked for once, and stays visible.
      await workbench.first.read('echo more >> root.txt; git add root.txt')
      // The open panel is restored.
      await page.reload()
      await panel.getByLabel('Commit message').fill('a second commit')
      await workbench.button('Commit').click()
      await panel.getByText('No changes').waitFor()
      expect(await panel.getByLabel('Your name').inputValue()).toBe('Ann Author')
    })

    test('of git find nested repositories, show renames and keep the commit message', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.first.read(
        'git init -q proj; cd proj; git config user.name A; git config user.email a@example.test; seq 50 > ren.txt; git add .; git commit -qm first; git mv ren.txt renamed.txt; cd ..',
      )
      const git = (): Promise<void> =>
        page.getByRole('navigation').getByRole('button', { name: 'Git' }).click()
      await git()
      const panel = page.getByRole('complementary', { name: 'Git' })
      await panel.getByRole('heading', { name: 'Git in dev' }).waitFor()
      await panel.getByLabel('Repository').selectOption('proj')
      await panel.getByRole('button', { name: 'ren.txt → renamed.txt' }).click()
      await page.getByText('Renamed without changes').waitFor()

      const message = panel.getByLabel('Commit message')
      await message.fill('words that stay')
      await workbench.button('Files').click()
      await page.getByRole('tree').waitFor()
      await git()
      expect(await message.inputValue()).toBe('words that stay')
      await page.route('**/api/**', (route) => route.abort('connectionrefused'))
      await workbench.button('Refresh').click()
      await panel.getByText('Server unreachable. Retrying… Showing').waitFor()
      expect(await message.inputValue()).toBe('words that stay')
      await page.unroute('**/api/**')
      await panel.getByText('Server unreachable').waitFor({ state: 'detached' })
      await page.reload()
      await panel.getByText('ren.txt → renamed.txt').waitFor()
      expect(await panel.getByLabel('Repository').inputValue()).toBe('proj')
      expect(await message.inputValue()).toBe('words that stay')
      await workbench.button('Commit').click()
      await panel.getByText('No changes').waitFor()
      expect(await message.inputValue()).toBe('')

      await panel.getByRole('button', { name: 'Log' }).click()
      await panel.getByRole('button', { name: /^words that stay/ }).click()
      await panel.getByRole('button', { name: 'ren.txt → renamed.txt' }).waitFor()
      await panel.getByRole('button', { name: /^first/ }).click()
      await panel.getByRole('button', { name: 'ren.txt', exact: true }).waitFor()
      await workbench.button('Files').click()
      await page.getByRole('tree').waitFor()
      expect(workbench.errors).toEqual([])
    })

    test('follow the sandbox of the focused terminal, also after a reload', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.first.read('touch of-dev.txt')
      const created = await fixture.host.fetch('/api/sandboxes', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'aardvark' }),
      })
      expect(created.status).toBe(201)
      // Sorted first by its name.
      await page.reload()
      await workbench.first.waitFor('of-dev')
      await workbench.button('Files').click()
      await page.getByRole('treeitem', { name: 'of-dev.txt' }).waitFor()
      await workbench.button('Sandboxes').click()
      await page.getByRole('button', { name: 'New terminal in aardvark' }).click()
      await workbench.first.ready()
      await workbench.first.read('touch of-aardvark.txt')
      await workbench.button('Files').click()
      await page.getByRole('treeitem', { name: 'of-aardvark.txt' }).waitFor()
      await page.getByRole('tab').first().click()
      await page.getByRole('treeitem', { name: 'of-dev.txt' }).waitFor()
      await fixture.host.fetch('/api/sandboxes/aardvark', { method: 'DELETE' })
    })

    test('distinguish sessions, focus open ones and name their owner', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      const rows = page.getByRole('region', { name: 'Sessions' }).getByRole('listitem')
      // Without polls, so that none of them is what removes the rows.
      await page.addInitScript(() => {
        window.setInterval = (() => 0) as unknown as typeof setInterval
      })
      await page.reload()
      await workbench.button('New terminal in dev').click()
      await page.getByRole('tab').nth(1).waitFor()
      await workbench.first.run('printf "\\033]2;building\\007"; sleep 600')
      const building = rows.filter({ hasText: 'building' })
      await building.getByText(/^open$/).waitFor()
      await building.getByText(/dev · you · just started/).waitFor()
      const labels = await rows
        .getByRole('button', { name: /^End / })
        .evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')))
      expect(new Set(labels).size).toBe(labels.length)
      await page.getByRole('tab').first().click()
      await building.getByRole('button').first().click()
      expect(await page.getByRole('tab').count()).toBe(2)
      await page.getByRole('tab', { name: 'building', selected: true }).waitFor()
      await page.waitForFunction(() => document.title === 'Terminal: building — dev — Sandwire')
      // After a reload the user is listed at once.
      await page.reload()
      await building.getByText(/dev · you · /).waitFor()

      await workbench.button('Share terminal').click()
      await workbench.button('Create link').click()
      const link = await page.getByLabel('The link works once').inputValue()
      await using guest = await fixture.openSignedOut()
      await guest.page.goto(link)
      await guest.page.getByLabel('Your name').fill('Gus')
      await guest.button('Join').click()
      await guest.page.locator('#open').click()
      await guest.first.until(({ status }) => status === 'attached')
      await guest.page.locator('.status-sandbox').getByText('owner’s sandbox').waitFor()
      await guest.page.getByRole('region', { name: 'Sessions' }).getByText('owner’s sandbox').waitFor()
      // The open dialog lists the new participant.
      await page
        .getByRole('dialog')
        .getByText(/^Guest Gus/)
        .first()
        .waitFor()
    })

    test('of sessions drop those of a stopped sandbox at once', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      const rows = page.getByRole('region', { name: 'Sessions' }).getByRole('listitem')
      // Without polls, so that none of them is what removes the rows.
      await page.addInitScript(() => {
        window.setInterval = (() => 0) as unknown as typeof setInterval
      })
      await page.reload()
      await workbench.button('New terminal in dev').click()
      await workbench.first.ready()
      await page.keyboard.press('Control+Shift+X')
      await rows.filter({ hasText: 'detached' }).first().waitFor()
      await workbench.button('Stop dev').click()
      await page.getByRole('dialog').getByRole('button', { name: 'Stop', exact: true }).click()
      await workbench.button('Start dev').waitFor()
      await rows.first().waitFor({ state: 'detached' })
    })

    test('clone a repository in a new sandbox, but not from a hidden field', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      const make = async (name: string, network: string): Promise<string> => {
        await workbench.button('New sandbox').click()
        await page.getByLabel('Name', { exact: true }).fill(name)
        await page.getByRole('radio', { name: 'Allowed hosts' }).check()
        await page.getByLabel(/^Allowed hosts, /).fill('example.invalid')
        await page.getByLabel('Git repository').fill('https://example.invalid/a.git')
        await page.getByRole('radio', { name: network }).check()
        await workbench.button('Create').click()
        await page.getByRole('dialog').waitFor({ state: 'detached' })
        return workbench.first.waitFor(/[$#] ?$/)
      }
      expect(await make('without', 'None')).not.toContain('clone')
      const text = await make('cloned', 'Allowed hosts')
      expect(text.split('git clone https://example.invalid/a.git')).toHaveLength(2)
      expect(text).toContain('fatal')
      expect(await workbench.first.read('echo sh"ell"')).toContain('shell')

      // A destroyed sandbox is reported, and its tab never shows an id.
      await workbench.button('Destroy cloned').click()
      await page.getByRole('dialog').getByRole('button', { name: 'Destroy' }).click()
      const ended = page.locator('.terminal-pane:visible .banner.ended')
      await ended.getByText('Sandbox destroyed').waitFor()
      await workbench.button('Destroy cloned').waitFor({ state: 'detached' })
      await page.reload()
      await ended.getByText('The session ended').waitFor()
      await page.getByRole('tab', { name: 'cloned', selected: true }).waitFor()
    })

    test('disappear from every page of an ended sign-in', async () => {
      const cookies = await fixture.signIn()
      await using workbench = await fixture.openPage({ cookies })
      await using far = await fixture.openPage({ cookies })
      const near = await workbench.context.newPage()
      await near.goto(fixture.origin)
      await near.getByText('Signed in as owner').waitFor()
      await workbench.button('Sign out').click()
      for (const page of [near, far.page]) {
        await page.getByText('You are signed out.').waitFor()
        expect(await page.locator('.workbench').count()).toBe(0)
      }
    })
  },
)
