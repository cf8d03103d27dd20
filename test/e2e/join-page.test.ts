import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import type { Browser, Page } from 'playwright-core'
import { accessCommand } from '../../apps/cli/src/text/command-line.ts'
import { type RunningControl, startControl, TOKEN } from '../../apps/control/test/support/control.ts'
import { linkIn, ApiClient, textIn } from '../../apps/control/test/support/api-client.ts'
import { FakeSandboxes } from '../../apps/control/test/support/fake-sandboxes.ts'
import { findBrowserProblem, openSharedBrowser } from './support/browser.ts'
import { buildWorkbench } from './support/built-workbench.ts'
import { ForeignServer } from './support/page-recorder.ts'

const problem = findBrowserProblem()

/** A page in a context of its own, and every URL and header it sent. */
async function openPage(browser: Browser): Promise<{ page: Page; sent: string[] }> {
  const page = await (await browser.newContext()).newPage()
  const sent: string[] = []
  page.on('request', (request) => sent.push(request.url(), JSON.stringify(request.headers())))
  return { page, sent }
}

/** Opens a socket from the page with a ticket; returns its protocol and first message. */
function openSocket(page: Page, session: string): Promise<readonly string[]> {
  return page.evaluate(async (id) => {
    const answer = await fetch('/api/tickets', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ session: id }),
    })
    const made: unknown = await answer.json()
    const ticket = String(Reflect.get(Object(made), 'ticket'))
    const socket = new WebSocket(`/terminal/${id}`, ['sandwire.v1', `sandwire.ticket.${ticket}`])
    return new Promise<string[]>((resolve, reject) => {
      socket.addEventListener('message', ({ data }) => resolve([socket.protocol, String(data)]))
      socket.addEventListener('error', () => reject(new Error('No socket')))
    })
  }, session)
}

describe.skipIf(problem !== undefined)(
  `the join page in Chromium${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let sandboxes: FakeSandboxes
    let issuer: TestIssuer
    let browser: Browser
    let workbench: string
    beforeAll(async () => {
      workbench = await buildWorkbench()
      sandboxes = new FakeSandboxes()
      issuer = await startIssuer()
      browser = await openSharedBrowser()
    })
    afterAll(async () => {
      await issuer[Symbol.asyncDispose]()
      await sandboxes[Symbol.asyncDispose]()
    })

    /** The last attach request that reached sandboxd. */
    const lastAttach = () => sandboxes.seen.findLast(({ claims }) => /^\/attach(\?|$)/.test(claims.path))

    /** A session of the owner with its share link. */
    async function share(
      control: RunningControl,
    ): Promise<{ session: string; link: string; secret: string }> {
      const owner = new ApiClient(control, TOKEN)
      const made = await owner.post('/api/sandboxes', { name: `s-${crypto.randomUUID().slice(0, 8)}` })
      const session = `${textIn(made, 'id')}.${'0'.repeat(26)}`
      sandboxes.sessions.add(session)
      const told = await owner.post('/api/grants', { session })
      return { session, link: textIn(told, 'link'), secret: linkIn(told).split('.')[2] ?? '' }
    }

    test('signs in a guest by name, who connects with a ticket', async () => {
      await using control = await startControl({ runner: sandboxes, workbench })
      const { session, link, secret } = await share(control)
      const { page, sent } = await openPage(browser)
      await page.goto(link)
      expect(page.url()).toBe(`${control.origin}/join`)
      // CLI users must learn this before the link is used up.
      await page.getByText('npx sbx-stdio join').waitFor()
      await page.getByLabel('Your name').fill('Gus')
      await page.getByRole('button', { name: 'Join' }).click()
      await page.getByText('owner invited you to a session as viewer.').waitFor()
      // No CLI command, as the CLI has no credential of this browser.
      expect(await page.locator('body').textContent()).not.toContain('npx sbx-stdio http')
      expect(await page.evaluate(() => document.cookie)).toBe('')
      expect(await openSocket(page, session)).toEqual(['sandwire.v1', `session ${session}`])
      expect(lastAttach()?.claims).toMatchObject({ name: 'Gus (guest)', authority: 'viewer' })
      // The secret is left in no URL, storage or further request.
      expect(sent.join('\n')).not.toContain(secret)
      expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
      await page.goBack().catch(() => null)
      expect(page.url()).not.toContain(secret)
      await page.goto(link)
      await page.getByText('its owner will see your name, Gus (guest).').waitFor()
      await page.getByRole('button', { name: 'Join' }).click()
      await page.getByText('owner invited you to a session').waitFor()
      await page.context().close()

      const { page: late } = await openPage(browser)
      await late.goto(link)
      await late.getByRole('button', { name: 'Join' }).click()
      await late.getByText('The link was used, has expired or was revoked').waitFor()
      await late.context().close()
    })

    test('keeps its secret for a retry after a failure', async () => {
      await using control = await startControl({ runner: sandboxes, workbench })
      const { link, secret } = await share(control)
      const { page } = await openPage(browser)
      const kept = () => page.evaluate(() => JSON.stringify(Object.entries(sessionStorage)))
      const join = page.getByRole('button', { name: 'Join' })
      await page.goto(link)
      await page.getByLabel('Your name').fill('a\u202eb')
      await join.click()
      await page.getByText('Cannot use "name"').waitFor()
      expect(await kept()).toContain(secret)
      for (const [answer, words] of [
        [503, 'The server responded with status 503.'],
        [429, 'The server responded with status 429.'],
        [undefined, 'Server unreachable. Try again later.'],
      ] as const) {
        await page.route('**/api/grants/redeem', (route) =>
          answer === undefined ? route.abort() : route.fulfill({ status: answer, body: '' }),
        )
        await join.click()
        await page.getByText(words).waitFor()
        await page.unroute('**/api/grants/redeem')
        expect(await kept()).toContain(secret)
      }
      await page.getByLabel('Your name').fill('Gus')
      await join.click()
      await page.getByText('owner invited you to a session as viewer.').waitFor()
      expect(await kept()).toBe('[]')
      expect(await join.isVisible()).toBe(false)
      await page.context().close()
    })

    test('leads to the list of received shares', async () => {
      await using control = await startControl({ runner: sandboxes, workbench })
      const { session, link } = await share(control)
      const { page } = await openPage(browser)
      await page.goto(link)
      await page.getByLabel('Your name').fill('Gus')
      await page.getByRole('button', { name: 'Join' }).click()
      await page.getByRole('link', { name: 'Everything shared with you' }).click()
      await page.getByRole('heading', { name: 'Shared with you' }).waitFor()
      const owner = new ApiClient(control, TOKEN)
      const whole = await owner.post('/api/grants', { sandbox: session.split('.')[0], role: 'collaborator' })
      const name = textIn(await owner.get(`/api/sandboxes/${session.split('.')[0]}`), 'name')
      const rows = page.getByRole('region', { name: 'Shared with you' }).getByRole('listitem')
      await rows.first().waitFor()
      expect(await rows.allInnerTexts()).toEqual([
        expect.stringMatching(/^Session\s+from owner · view only · expires in /),
      ])
      // A guest has no sandbox, so nothing that needs one is offered.
      const button = (label: string) => page.getByRole('button', { name: label, exact: true })
      for (const label of ['New terminal', 'New sandbox', 'Split down', 'Files', 'Search', 'Git'])
        expect(await button(label).count()).toBe(0)
      await page.goto(textIn(whole, 'link'))
      await page.getByRole('button', { name: 'Join' }).click()
      await page.getByText(`owner invited you to sandbox ${name} as collaborator.`).waitFor()
      await page.goto(control.origin)
      await rows.nth(1).waitFor()
      expect((await rows.allInnerTexts())[1]).toMatch(
        new RegExp(`^${name}\\s+from owner · can type · expires in `),
      )
      for (const label of ['New terminal', 'Files']) await button(label).first().waitFor()
      expect(await button('New sandbox').count()).toBe(0)
      expect(await page.locator('body').textContent()).not.toContain(`--sandbox ${session.split('.')[0]}`)
      await page.context().close()
    })

    test('reveals nothing before the sign-in, and returns after it', async () => {
      await using control = await startControl({
        runner: sandboxes,
        workbench,
        config: { issuers: [issuer.configFor()] },
      })
      const { session, link, secret } = await share(control)
      const { page, sent } = await openPage(browser)
      await page.goto(link)
      await page.getByText('Sign in to accept the invitation.').waitFor()
      expect(await page.getByRole('button', { name: 'Join' }).isVisible()).toBe(false)
      await page.getByRole('link', { name: 'Sign in' }).click()
      await page.getByRole('link', { name: 'Continue with Test issuer' }).click()
      await page.getByLabel('User name').fill('ann')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('button', { name: 'Join' }).click()
      await page.getByText('owner invited you to a session as viewer.').waitFor()
      expect(await openSocket(page, session)).toEqual(['sandwire.v1', `session ${session}`])
      expect(lastAttach()?.claims).toMatchObject({ name: 'Ann Archer', authority: 'viewer' })
      expect(sent.join('\n')).not.toContain(secret)
      await page.context().close()
    })

    test('redeems nothing until a signed-in user clicks, wherever the link was opened (login CSRF)', async () => {
      await using control = await startControl({
        runner: sandboxes,
        workbench,
        config: { issuers: [issuer.configFor()] },
      })
      const { session, link } = await share(control)
      const owner = new ApiClient(control, TOKEN)
      const states = async () => {
        const { body } = await owner.get(`/api/grants?sandbox=${session.split('.')[0]}`)
        return (body as { grants: { state: string; name: string | null }[] }).grants.map(
          ({ state, name }) => `${state} ${name}`,
        )
      }
      const { page, sent } = await openPage(browser)
      await page.goto(`${control.origin}/signin`)
      await page.getByRole('link', { name: 'Continue with Test issuer' }).click()
      await page.getByLabel('User name').fill('ann')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL(`${control.origin}/`)
      await using foreign = new ForeignServer()
      await page.goto(`http://127.0.0.1:${foreign.port}`)
      await page.evaluate((address) => location.assign(address), link)
      const join = page.getByRole('button', { name: 'Join' })
      await Promise.race([join.waitFor(), page.getByText('owner invited you to a session').waitFor()])
      expect(await states()).toEqual(['open null'])
      expect(sent.filter((text) => text.endsWith('/api/grants/redeem'))).toEqual([])
      await page.getByText('its owner will see your name, Ann Archer.').waitFor()
      expect(await page.getByLabel('Your name').isVisible()).toBe(false)
      // Pressing Enter is not consent either.
      await page.keyboard.press('Enter')
      await join.click()
      await page.getByText('owner invited you to a session as viewer.').waitFor()
      expect(await states()).toEqual(['held Ann Archer'])
      expect(sent.filter((text) => text.endsWith('/api/grants/redeem'))).toHaveLength(1)
      await page.context().close()
    })

    test('shows a signed-in user the CLI command for the share', async () => {
      await using control = await startControl({
        runner: sandboxes,
        workbench,
        config: { issuers: [issuer.configFor()] },
      })
      const { session, link } = await share(control)
      const [sandbox = ''] = session.split('.')
      const owner = new ApiClient(control, TOKEN)
      const { page } = await openPage(browser)
      await page.goto(link)
      await page.getByRole('link', { name: 'Sign in' }).click()
      await page.getByRole('link', { name: 'Continue with Test issuer' }).click()
      await page.getByLabel('User name').fill('ann')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('button', { name: 'Join' }).click()
      await page.getByText('owner invited you to a session as viewer.').waitFor()
      const lineFor = (place: { readonly session?: string }, role: string): string =>
        accessCommand('npx sbx-stdio', control.origin, { sandbox, role, ...place })
      const lines = [lineFor({ session }, 'viewer')]
      expect(await page.locator('#line').textContent()).toBe(lines[0] ?? '')
      for (const [place, role] of [
        [{ session }, 'collaborator'],
        [{}, 'viewer'],
        [{}, 'collaborator'],
      ] as const) {
        const made = await owner.post('/api/grants', { sandbox, ...place, role })
        const what = 'session' in place ? 'a session' : 'sandbox'
        await page.goto(textIn(made, 'link'))
        await page.getByRole('button', { name: 'Join' }).click()
        await page.getByText(new RegExp(`invited you to ${what}.* as ${role}\\.`)).waitFor()
        expect(await page.locator('#line').textContent()).toBe(lineFor(place, role))
        lines.push(lineFor(place, role))
      }
      expect(lines[2]).toContain(`sessions ${sandbox} --url`)
      await page.goto(control.origin)
      const rows = page.getByRole('region', { name: 'Shared with you' }).getByRole('listitem')
      await rows.nth(3).waitFor()
      expect((await rows.allInnerTexts()).map((row) => /view only|can type/.exec(row)?.[0])).toEqual([
        'view only',
        'can type',
        'view only',
        'can type',
      ])
      await page.context().close()
    })

    test('without its secret explains that it is incomplete', async () => {
      await using control = await startControl({ runner: sandboxes, workbench })
      const { page } = await openPage(browser)
      await page.goto(`${control.origin}/join`)
      await page.getByText('This link is incomplete.').waitFor()
      await page.context().close()
    })
  },
)
