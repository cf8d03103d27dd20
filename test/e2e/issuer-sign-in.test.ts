import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import type { Browser, Page } from 'playwright-core'
import { type RunningControl, startControl } from '../../apps/control/test/support/control.ts'
import { FakeSandboxes } from '../../apps/control/test/support/fake-sandboxes.ts'
import { findBrowserProblem, openSharedBrowser } from './support/browser.ts'
import { buildWorkbench } from './support/built-workbench.ts'

const problem = findBrowserProblem()
describe.skipIf(problem !== undefined)(
  `signing in through an issuer in Chromium${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let sandboxes: FakeSandboxes
    let issuer: TestIssuer
    let control: RunningControl
    let browser: Browser
    beforeAll(async () => {
      sandboxes = new FakeSandboxes()
      issuer = await startIssuer()
      const workbench = await buildWorkbench()
      control = await startControl({
        runner: sandboxes,
        workbench,
        config: { issuers: [issuer.configFor()] },
      })
      const headers = { authorization: `Bearer ${await issuer.mintToken('ann')}` }
      const json = { name: 'dev', start: false }
      await control.fetch('/api/sandboxes', { method: 'POST', headers, json })
      browser = await openSharedBrowser()
    })
    afterAll(async () => {
      await control[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
      await sandboxes[Symbol.asyncDispose]()
    })

    /** A page in its own browser context, and its console errors. */
    async function openPage(): Promise<{ page: Page; complaints: string[] }> {
      const page = await (await browser.newContext()).newPage()
      const complaints: string[] = []
      page.on('console', (message) => {
        const isOurs = message.location().url.startsWith(control.origin)
        // The page first requests the current account; without one the console logs a 401 or 403.
        if (isOurs && message.type() === 'error' && !/\b40[13]\b/.test(message.text()))
          complaints.push(message.text())
      })
      page.on('pageerror', (error) => complaints.push(error.message))
      return { page, complaints }
    }

    async function signIn(page: Page, user: string): Promise<void> {
      await page.goto(`${control.origin}/`)
      await page.getByRole('link', { name: 'Sign in' }).click()
      await page.getByRole('link', { name: 'Continue with Test issuer' }).click()
      // The issuer is on another site, so that cross-site rules of browsers apply.
      expect(new URL(page.url()).origin).toBe(issuer.url)
      await page.getByLabel('User name').fill(user)
      await page.getByRole('button', { name: 'Sign in' }).click()
    }

    test('returns signed in, stays signed in after a reload, and signs out', async () => {
      const { page, complaints } = await openPage()
      await signIn(page, 'ann')
      await page.getByText('Signed in as Ann Archer').waitFor()
      expect(page.url()).toBe(`${control.origin}/`)
      await page.getByRole('button', { name: /^dev\b/ }).waitFor()
      expect(await page.evaluate(() => document.cookie)).toBe('')
      const cookies = await page.context().cookies(control.origin)
      expect(
        cookies
          .filter(({ name }) => name.startsWith('__Host-'))
          .map(({ name, httpOnly, secure, sameSite }) => ({ name, httpOnly, secure, sameSite })),
      ).toEqual([{ name: '__Host-sandwire', httpOnly: true, secure: true, sameSite: 'Strict' }])

      await page.reload()
      await page.getByText('Signed in as Ann Archer').waitFor()

      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.waitForURL(`${control.origin}/signin`)
      await page.goto(`${control.origin}/`)
      await page.getByText('You are signed out.').waitFor()
      expect(await page.getByText('Ann Archer').isVisible()).toBe(false)
      expect(complaints).toEqual([])
      await page.context().close()
    })

    test('shows that the user refused, and offers to try again', async () => {
      const { page, complaints } = await openPage()
      await page.goto(`${control.origin}/signin`)
      await page.getByRole('link', { name: 'Continue with Test issuer' }).click()
      await page.getByRole('button', { name: 'Refuse' }).click()
      await page.getByText('The sign-in was canceled or denied.').waitFor()
      await page.getByRole('link', { name: 'Try again' }).click()
      await page.getByRole('link', { name: 'Continue with Test issuer' }).waitFor()
      expect(complaints).toEqual([])
      await page.context().close()
    })

    test('returns to the page that started it', async () => {
      const { page } = await openPage()
      await page.goto(`${control.origin}/signin?to=%2Fjoin`)
      await page.getByRole('link', { name: 'Continue with Test issuer' }).click()
      await page.getByLabel('User name').fill('bob')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL(`${control.origin}/join`)
      await page.context().close()
    })

    test('cannot be started or completed by a page of another site (login CSRF)', async () => {
      const { page } = await openPage()
      const planted = await fetch(`${control.origin}/signin/start?issuer=test`, { redirect: 'manual' })
      const back = await issuer.signIn(planted.headers.get('location') ?? '', 'eve')
      const evil = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        fetch: () =>
          new Response(
            `<!doctype html><a href="${control.origin}/signin/start?issuer=test">start</a> <a href="${back.href.replaceAll('&', '&amp;')}">finish</a>`,
            { headers: { 'content-type': 'text/html' } },
          ),
      })
      const address = `http://127.0.0.1:${evil.port}/`
      await page.goto(address)
      await page.getByRole('link', { name: 'start' }).click()
      await page.waitForURL(`${control.origin}/signin`)
      await page.goto(address)
      await page.getByRole('link', { name: 'finish' }).click()
      await page.getByText('was started in another browser').waitFor()
      await page.goto(`${control.origin}/`)
      await page.getByText('You are signed out.').waitFor()
      await page.context().close()
      await evil.stop(true)
    })
  },
)
