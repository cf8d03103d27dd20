import { eventually } from '@sandwire/testing'
import { findBrowserProblem } from '../../test/e2e/support/browser.ts'
import { type RunningHost, startHost } from '../../test/e2e/support/control.ts'
import { findTerminals } from '../../test/e2e/support/workbench-page.ts'
import { makeSignInLink } from '../../test/e2e/support/workbench.ts'
import type { BenchPage } from '../programs/workbench-page.ts'
import { BarePage } from './bare-page.ts'
import { findIsolationProblem } from './control-plane.ts'

declare const bench: BenchPage

const SCRIPT = new URL('../programs/workbench-page.ts', import.meta.url).pathname
const WAIT = { timeoutMs: 30_000 }

/** Why the workbench cannot be measured here, or undefined when it can. */
export function findWorkbenchProblem(): string | undefined {
  return findBrowserProblem() ?? findIsolationProblem()
}

/** The workbench in Chromium, with the measuring script in its page. */
export class MeasuredWorkbench implements AsyncDisposable {
  readonly host: RunningHost
  readonly page: BarePage
  /** Host name of the sign-in cookies. */
  readonly origin: string

  private constructor(host: RunningHost, page: BarePage, origin: string) {
    this.host = host
    this.page = page
    this.origin = origin
  }

  /** Opens the workbench and waits for a prompt. */
  static async open(): Promise<MeasuredWorkbench> {
    const built = await Bun.build({ entrypoints: [SCRIPT], target: 'browser', format: 'iife' })
    const script = `(${findTerminals.toString()})();\n${(await built.outputs[0]?.text()) ?? ''}`
    const [host, page] = await Promise.all([startHost(), BarePage.open(script)])
    const link = await makeSignInLink(host)
    const workbench = new MeasuredWorkbench(host, page, new URL(link).origin)
    try {
      await page.goto(link)
      await workbench.waitFor(/[$#] ?$/)
      await workbench.run("PS1='> '; clear")
      await workbench.waitFor(/^> ?$/)
    } catch (error) {
      await workbench[Symbol.asyncDispose]()
      throw error
    }
    return workbench
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.page[Symbol.asyncDispose]()
    await this.host.stop()
  }

  /** Types a line and Enter into the first terminal. */
  async run(command: string): Promise<void> {
    await this.page.evaluate((text) => bench.type(text), `${command}\r`)
  }

  /** Types Ctrl-C. */
  async interrupt(): Promise<void> {
    await this.page.evaluate((text) => bench.type(text), '\u0003')
  }

  /** Waits until the first terminal shows a text. */
  async waitFor(wanted: RegExp): Promise<void> {
    await eventually(async () => wanted.test(await this.page.evaluate(() => bench.readText())), {
      what: `${String(wanted)} in the workbench`,
      ...WAIT,
    })
  }
}
