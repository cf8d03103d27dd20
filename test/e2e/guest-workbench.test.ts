import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem() ?? (Bun.which('bwrap') === null ? 'no bubblewrap' : undefined)
const TIMEOUT_MS = 120_000

describe.skipIf(problem !== undefined)(
  `a guest in the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    let owner: WorkbenchPage
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
      owner = await fixture.openPage()
    }, TIMEOUT_MS)
    afterAll(async () => {
      await owner[Symbol.asyncDispose]()
    })

    async function share(request: object): Promise<{ grant: string; link: string }> {
      const answer = await fixture.host.fetch('/api/grants', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(request),
      })
      return (await answer.json()) as { grant: string; link: string }
    }

    /** Joins by a link as a new guest. */
    async function come(link: string): Promise<WorkbenchPage> {
      const guest = await fixture.openSignedOut({ viewport: { width: 900, height: 600 } })
      await guest.page.goto(link)
      await guest.page.getByLabel('Your name').fill('Gus')
      await guest.button('Join').click()
      await guest.page.getByRole('link', { name: 'Open', exact: true }).click()
      return guest
    }

    test(
      'watches the shared session at the driver’s size, and is offered nothing else',
      async () => {
        const session = await owner.first.session()
        const { grant, link } = await share({ session })
        await owner.first.run('echo seen by "all"')
        await owner.first.waitFor('seen by all')
        await using guest = await come(link)
        await guest.first.waitFor('seen by all')
        expect((await guest.first.until(({ status }) => status === 'attached')).role).toBe('viewer')
        // The guest's arrival itself resizes the driver's terminal: a bar with the participants appears.
        await owner.page.getByText('You have control').first().waitFor()
        const driver = await owner.first.until(
          ({ cols, rows, drawn }) => cols === drawn[0] && rows === drawn[1],
        )
        await guest.first.until(
          ({ cols, rows, drawn }) =>
            [cols, rows].join() === driver.drawn.join() && drawn.join() === driver.drawn.join(),
        )
        // The page says so, and keys do nothing.
        await guest.page.locator('.read-only-line').waitFor()
        await guest.page.getByText('owner has control').waitFor()
        await guest.first.type('touch typed\n')
        await guest.page.keyboard.press('Control+Shift+Backquote')
        await guest.page.getByText('No sandbox you can start a terminal in').waitFor()
        expect(await guest.page.getByRole('tab').count()).toBe(1)
        for (const label of ['New terminal', 'New sandbox', 'Split down', 'Share terminal', 'Files', 'Git'])
          expect(await guest.page.getByRole('button', { name: label, exact: true }).count()).toBe(0)

        await guest.page.keyboard.press('Control+Shift+P')
        await guest.page.getByRole('option', { name: 'Settings' }).waitFor()
        for (const title of ['New terminal', 'Files', 'Go to file'])
          expect(await guest.page.getByRole('option', { name: title }).count()).toBe(0)
        await guest.page.keyboard.press('Escape')

        // The driver's resize applies to all.
        await owner.page.setViewportSize({ width: 700, height: 500 })
        await owner.first.until((facts) => facts.cols !== driver.cols)
        const smaller = await owner.first.until(
          ({ cols: width, drawn: [drawnWidth] }) => width === drawnWidth,
        )
        await guest.first.until((facts) => facts.drawn[0] === smaller.cols && facts.drawn[1] === smaller.rows)
        expect(await owner.first.read('ls typed 2>&1')).toContain('No such file')

        // A reload restores it; a revocation ends it without offering a shell.
        await guest.page.reload()
        await guest.first.waitFor('seen by all')
        await fixture.host.fetch(`/api/grants/${grant}`, { method: 'DELETE' })
        await guest.page.getByText('Access was removed').waitFor()
        expect(await guest.button('New shell').count()).toBe(0)
        expect(guest.errors).toEqual([])
        await owner.page.setViewportSize({ width: 1200, height: 800 })
      },
      TIMEOUT_MS,
    )

    test(
      'sees nothing that the previous user had open in this browser',
      async () => {
        const session = await owner.first.session()
        await owner.first.run('echo text > secret.txt; echo writ"ten"')
        await owner.first.waitFor('written')
        await using shared = await fixture.openPage()
        await shared.page.getByRole('button', { name: 'Files', exact: true }).click()
        await shared.page.getByRole('treeitem', { name: 'secret.txt' }).click()
        await shared.page.getByRole('tab', { name: 'secret.txt' }).waitFor()
        // The sign-in stays valid for the owner's other pages.
        await shared.context.clearCookies()
        const { link } = await share({ session })
        await shared.page.goto(link)
        await shared.page.getByLabel('Your name').fill('Eve')
        await shared.button('Join').click()
        await shared.page.getByRole('link', { name: 'Open', exact: true }).click()
        await shared.page.locator('.read-only-line').waitFor()
        expect(await shared.page.getByRole('tab').count()).toBe(1)
        expect(await shared.page.evaluate(() => JSON.stringify(localStorage))).not.toContain('secret')
      },
      TIMEOUT_MS,
    )

    test(
      'works in a wholly shared sandbox with shells and files',
      async () => {
        const [sandbox = ''] = (await owner.first.session()).split('.')
        const { link } = await share({ sandbox, role: 'collaborator' })
        await using guest = await come(link)
        await guest.first.ready()
        await guest.first.run('echo by the guest > from-guest')
        await eventually(async () => (await owner.first.read('cat from-guest')).includes('by the guest'), {
          what: 'the file of the guest',
        })
        await guest.page.getByRole('button', { name: 'Files', exact: true }).click()
        await guest.page.getByText('from-guest').waitFor()
        expect(await guest.page.getByRole('button', { name: 'New sandbox' }).count()).toBe(0)
        expect(guest.errors).toEqual([])
      },
      TIMEOUT_MS,
    )

    test(
      'sees that a sandbox was destroyed, not stopped',
      async () => {
        await using host = await fixture.openPage()
        const post = (path: string, body: object) =>
          fixture.host.fetch(`/api/sandboxes${path}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          })
        const { id } = (await (await post('', { name: 'doomed', start: true })).json()) as { id: string }
        await host.button('Refresh').click()
        await host.page.getByRole('button', { name: 'New terminal in doomed' }).click()
        await host.first.ready()
        const { link } = await share({ session: await host.first.session() })
        await using guest = await come(link)
        await guest.page.locator('.read-only-line').waitFor()
        await fixture.host.fetch(`/api/sandboxes/${id}`, { method: 'DELETE' })
        await guest.page.getByText('Sandbox destroyed').waitFor()
      },
      TIMEOUT_MS,
    )

    test(
      'with view access to a sandbox joins from the list of sessions',
      async () => {
        const session = await owner.first.session()
        const { link } = await share({ sandbox: session.split('.')[0], role: 'viewer' })
        await using guest = await come(link)
        await guest.page.getByText('No open tabs. Select a session shared with you.').waitFor()
        const rows = guest.page.getByRole('region', { name: 'Sessions' }).getByRole('listitem')
        await rows.first().waitFor()
        expect(await guest.page.getByRole('button', { name: /^End / }).count()).toBe(0)
        await rows.first().getByRole('button').click()
        await guest.page.locator('.read-only-line').waitFor()
      },
      TIMEOUT_MS,
    )
  },
)
