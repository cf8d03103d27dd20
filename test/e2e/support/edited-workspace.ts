import { expect } from 'bun:test'
import { eventually } from '@sandwire/testing'
import type { Locator } from 'playwright-core'
import type { WorkbenchPage, WorkbenchPageOptions, WorkbenchFixture } from './workbench.ts'

export const editor = (workbench: WorkbenchPage): Locator => workbench.page.locator('.cm-content:visible')
export const mine = (workbench: WorkbenchPage): Locator =>
  workbench.page.locator('.cm-merge-b .cm-content:visible')
export const banner = (workbench: WorkbenchPage): Locator => workbench.page.locator('.banner.conflict')
export const tab = (workbench: WorkbenchPage, name: string | RegExp): Locator =>
  workbench.page.getByRole('tab', { name })

/** A page, and access to its workspace by another client. */
export class EditedWorkspace implements AsyncDisposable {
  readonly workbench: WorkbenchPage
  readonly #sandbox: string

  private constructor(workbench: WorkbenchPage, sandbox: string) {
    this.workbench = workbench
    this.#sandbox = sandbox
  }

  static async open(fixture: WorkbenchFixture, options: WorkbenchPageOptions = {}): Promise<EditedWorkspace> {
    const workbench = await fixture.openPage(options)
    const [sandbox = ''] = (await workbench.first.session()).split('.')
    return new EditedWorkspace(workbench, sandbox)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.workbench[Symbol.asyncDispose]()
  }

  #fetch(path: string, init?: RequestInit): Promise<Response> {
    return this.workbench.fixture.host.fetch(`/api/workspaces/${this.#sandbox}/file?path=${path}`, init)
  }

  async write(path: string, body: string | Uint8Array<ArrayBuffer>): Promise<void> {
    expect((await this.#fetch(path, { method: 'PUT', body })).ok).toBe(true)
  }

  async remove(path: string): Promise<void> {
    expect((await this.#fetch(path, { method: 'DELETE' })).ok).toBe(true)
  }

  async read(path: string): Promise<string> {
    return Buffer.from(await (await this.#fetch(path)).arrayBuffer()).toString()
  }

  /** Writes a file and opens it. */
  async show(path: string, text: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const { page } = this.workbench
    await this.write(path, text)
    await page.keyboard.press('Control+Shift+E')
    await page.getByRole('treeitem', { name: path }).click()
    await tab(this.workbench, new RegExp(`^${path}`)).waitFor()
    await editor(this.workbench).waitFor()
  }

  /** Puts the cursor at the end of a line. */
  async goToLine(line: number): Promise<void> {
    const { page } = this.workbench
    await editor(this.workbench).last().click()
    await page.keyboard.press('Control+Alt+G')
    await page.locator('.cm-dialog input').fill(String(line))
    await page.keyboard.press('Enter')
    // The text moves when the dialog closes.
    await page.locator('.cm-dialog').waitFor({ state: 'detached' })
    // CodeMirror scrolls in the next frame, and a key before it cancels that.
    await page.evaluate(() => new Promise(requestAnimationFrame))
    await page.keyboard.press('End')
  }
}

/** Distance of a line from the top of its pane. */
export async function heightOf(text: Locator, line: string): Promise<number> {
  const own = await text.locator('.cm-line').getByText(line, { exact: true }).boundingBox()
  const pane = await text.page().locator('.editor:visible').boundingBox()
  return (own?.y ?? Number.NaN) - (pane?.y ?? 0)
}

/** Waits until a line is where it was, within the pixels that a change marker shifts it. */
export async function isAtHeight(text: Locator, line: string, height: number): Promise<void> {
  await eventually(
    async () => {
      const now = await heightOf(text, line)
      if (!(Math.abs(now - height) < 3)) throw new Error(`It is at ${now} px, was at ${height} px`)
      return true
    },
    { what: `"${line}" to be where it was` },
  )
}
