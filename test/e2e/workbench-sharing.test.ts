import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import {
  type WorkbenchPage,
  type WorkbenchPageOptions,
  type TerminalView,
  WorkbenchFixture,
} from './support/workbench.ts'

const problem = findBrowserProblem()
/** Limit for disconnecting after a revocation. */
const CUT_MS = 5_000

describe.skipIf(problem !== undefined)(
  `a terminal shared from the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    /** Creates a share link for the active terminal in the dialog. */
    async function share(owner: WorkbenchPage, choice: 'View only' | 'Can type'): Promise<string> {
      await owner.button('Share terminal').click()
      await owner.page.getByRole('radio', { name: choice }).check()
      await owner.button('Create link').click()
      const link = await owner.page.getByLabel('The link works once').inputValue()
      await owner.page.getByRole('button', { name: 'Close', exact: true }).click()
      return link
    }

    /** Joins as a guest. */
    async function join(
      link: string,
      name: string,
      options: WorkbenchPageOptions = {},
    ): Promise<WorkbenchPage> {
      const guest = await fixture.openSignedOut(options)
      await guest.page.goto(link)
      await guest.page.getByLabel('Your name').fill(name)
      await guest.button('Join').click()
      await guest.page.getByText('invited you to a session').waitFor()
      await guest.page.locator('#open').click()
      await guest.first.until(({ status }) => status === 'attached')
      return guest
    }

    async function expectSame(one: TerminalView, other: TerminalView): Promise<void> {
      // The texts as compared; read again, they may differ.
      let seen = ['', '']
      const isSame = async (): Promise<boolean> => {
        seen = [await one.text(), await other.text()]
        return seen[0] === seen[1]
      }
      await eventually(isSame, { what: 'both to show the same' }).catch(() => undefined)
      expect(seen[0]?.split('\n')).toEqual(seen[1]?.split('\n'))
    }

    /** True when the terminal fits its container. */
    const isWhole = (workbench: WorkbenchPage): Promise<boolean> =>
      workbench.first.element.evaluate((place) => {
        const screen = place.querySelector('.xterm-screen')?.getBoundingClientRect()
        const { right, bottom } = place.getBoundingClientRect()
        return screen !== undefined && screen.right <= right && screen.bottom <= bottom
      })

    test('is shown to a viewer, who cannot type and follows the driver’s size', async () => {
      await using owner = await fixture.openPage()
      await owner.first.run(
        'for i in $(seq 1 100); do printf "\\033[3%dm$i 漢字 🙂\\033[0m\\n" $((i % 8)); done',
      )
      await owner.first.waitFor('100 漢字')
      const link = await share(owner, 'View only')
      await using guest = await join(link, `Gus Guest${'\u3164'.repeat(20)}\u2800.`, {
        viewport: { width: 900, height: 600 },
      })
      expect((await guest.first.facts())?.role).toBe('viewer')
      await expectSame(guest.first, owner.first)
      await guest.page.locator('.read-only-line').waitFor()
      await guest.page.getByText('owner has control').waitFor()
      await owner.page.getByText('You have control').first().waitFor()
      // No action without effect is offered.
      await owner.page
        .locator('.participant', { hasText: /^..?Guest Gus Guest \.: view only\. Viewers/ })
        .waitFor()
      expect(await owner.button(/Give control/).count()).toBe(0)

      await guest.first.type('echo never\n')
      await guest.first.paste('echo never')
      await owner.first.run('echo "from the"" owner"')
      await guest.first.waitFor('from the owner')
      await expectSame(guest.first, owner.first)
      expect(await owner.first.text()).not.toContain('never')

      for (const viewport of [
        { width: 1600, height: 1000 },
        { width: 640, height: 420 },
      ]) {
        const before = await owner.first.facts()
        await owner.page.setViewportSize(viewport)
        const { drawn } = await owner.first.until((facts) => facts.drawn[0] !== before?.drawn[0])
        const size = await owner.first.read('stty size')
        expect(size.split(' ').map(Number)).toEqual([drawn[1], drawn[0]])
        await guest.first.until((facts) => facts.drawn.join() === drawn.join())
        await expectSame(guest.first, owner.first)
        // A smaller font makes it fit.
        await eventually(() => isWhole(guest), { what: 'all of it to be in sight' })
      }
    })

    test('passes control by request, by giving and by taking', async () => {
      await using owner = await fixture.openPage()
      await using guest = await join(await share(owner, 'Can type'), 'Cleo')
      expect((await guest.first.facts())?.role).toBe('collaborator')
      await guest.page.locator('.participant-text', { hasText: 'owner has control' }).waitFor()
      await guest.first.run('echo "typed by"" cleo"')
      await owner.first.waitFor('typed by cleo')
      await expectSame(guest.first, owner.first)

      await guest.button('Request control').click()
      await owner.button(/^Give control to guest Cleo/).click()
      await guest.first.until(({ role }) => role === 'driver')
      // Giving control away leaves a viewer.
      await owner.first.until(({ role }) => role === 'viewer')
      await owner.page.locator('.read-only-line').waitFor()
      await guest.page.locator('.participant-text', { hasText: 'You have control' }).waitFor()
      await owner.page
        .getByText(/Cleo.* has control/)
        .first()
        .waitFor()
      // The guest now determines the size.
      await guest.page.setViewportSize({ width: 1000, height: 640 })
      await guest.first.until(({ cols, drawn }) => cols === drawn[0] && cols < 110)
      const { drawn } = await guest.first.until(() => true)
      await owner.first.until((facts) => facts.drawn.join() === drawn.join())

      await owner.button('Take control').click()
      await owner.first.until(({ role }) => role === 'driver')
      await guest.first.until(({ role }) => role === 'viewer')
      await owner.button(/Cleo.*Give control/).click()
      await guest.first.until(({ role }) => role === 'driver')
    })

    test('disconnects a guest whose access is revoked', async () => {
      await using owner = await fixture.openPage()
      await using guest = await join(await share(owner, 'View only'), `Gus${'x'.repeat(50)}`)
      await owner.button('Share terminal').click()
      const rows = owner.page.getByRole('list', { name: 'Shared with' })
      await rows.getByText('Gus').waitFor()
      // A name without a place to break does not widen the page of a phone.
      await owner.page.setViewportSize({ width: 390, height: 844 })
      const widths = await owner.page
        .locator('html, .participant-bar, .dialog-body')
        .evaluateAll((all) => all.map((one) => one.scrollWidth - one.clientWidth))
      expect(widths).toEqual([0, 0, 0])
      await owner.page.setViewportSize({ width: 1200, height: 800 })
      await rows.getByRole('listitem').filter({ hasText: 'Gus' }).getByRole('button').click()
      await guest.page.locator('.banner.ended').waitFor({ timeout: CUT_MS })
      expect(await guest.page.locator('.banner.ended').innerText()).toContain('Access was removed')
      await owner.page.getByRole('button', { name: 'Close', exact: true }).click()
      const before = await guest.first.text()
      await owner.first.run('echo "a se""cret"')
      await owner.first.waitFor('a secret')
      expect(await guest.first.text()).toBe(before)
    })

    test('ends what a collaborator of the sandbox started, if the owner chooses so', async () => {
      await using owner = await fixture.openPage()
      await owner.first.until(({ status }) => status === 'attached')
      /** Requests of the owner's page, and of a guest with a token. */
      const ask = (path: string, json: unknown, token?: string): Promise<Record<string, string>> =>
        owner.page.evaluate(
          async ([url, text, bearer]) => {
            const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
            const init = text === undefined ? {} : { method: 'POST', body: text }
            const headers = { 'content-type': 'application/json', ...authorization }
            const response = await fetch(url, { ...init, headers })
            return (await response.json()) as Record<string, string>
          },
          [path, json === undefined ? undefined : JSON.stringify(json), token] as const,
        )
      const sandboxes = JSON.stringify(await ask('/api/sandboxes', undefined))
      const sandbox = /"id":"([0-9a-z]{32})"/.exec(sandboxes)?.[1] ?? ''
      const { link = '' } = await ask('/api/grants', { sandbox, role: 'collaborator' })
      const redeem = { link: link.split('#')[1] ?? '', name: 'Gale' }
      const redeemed = await fetch(new URL('/api/grants/redeem', link), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(redeem),
      })
      const { token } = (await redeemed.json()) as { token: string }
      const { id = '' } = await ask(`/api/sandboxes/${sandbox}/sessions`, { cmd: 'cat', keep: 600 }, token)
      await owner.button('Share terminal').click()
      const rows = owner.page.getByRole('list', { name: 'Shared with' })
      await rows.getByText('Gale').waitFor()
      await owner.page.getByRole('checkbox', { name: 'also end the terminals' }).check()
      await rows.getByRole('listitem').filter({ hasText: 'Gale' }).getByRole('button').click()
      const isListed = async (): Promise<boolean> =>
        JSON.stringify(await ask('/api/account/sessions', undefined)).includes(id)
      await eventually(async () => !(await isListed()), { what: 'its end' })
      expect((await owner.first.until(() => true)).status).toBe('attached')
    })

    test('shows a full-screen program to a late viewer', async () => {
      await using owner = await fixture.openPage()
      await owner.first.run('seq 1 300 > numbers; vim -u NONE -c "set number ruler showmode" numbers')
      await owner.first.waitFor('"numbers"')
      await owner.first.type('20Gihello ')
      await owner.first.waitFor('-- INSERT --')
      await using guest = await join(await share(owner, 'View only'), 'Lara')
      await expectSame(guest.first, owner.first)
      await owner.first.type('again')
      await guest.first.waitFor('hello again')
      await expectSame(guest.first, owner.first)
    })
  },
)
