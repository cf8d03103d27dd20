import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const CHROMIUM = '/usr/bin/chromium'

/** Why browser tests cannot run here, or undefined when they can. */
export function findBrowserObstacle(): string | undefined {
  return existsSync(CHROMIUM) ? undefined : 'Chromium is not installed'
}

/** Debian's Chromium, headless and quiet on the network. */
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
