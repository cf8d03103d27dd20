import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { share } from './shared.ts'

/** Debian's Chromium without windows, which takes less processor time, or with them where it is missing. */
export const CHROMIUM =
  ['/usr/lib/chromium/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync) ?? ''

/** Why browser tests cannot run here, or undefined when they can. */
export function findBrowserProblem(): string | undefined {
  return CHROMIUM === '' ? 'Chromium is not installed' : undefined
}

/** Chromium without background network traffic. */
export function openBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...args,
    ],
  })
}

/** The browser shared by all test files of this process. Callers close the contexts and pages that they open. */
export function openSharedBrowser(): Promise<Browser> {
  return share('browser', () => openBrowser())
}
