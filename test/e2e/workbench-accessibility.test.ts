import { beforeAll, describe, expect, test } from 'bun:test'
import type { AxeResults } from 'axe-core'
import axe from 'axe-core'
import { findBrowserProblem } from './support/browser.ts'
import { type Desk, WorkbenchScene } from './support/workbench.ts'

const obstacle = findBrowserProblem()

declare const window: { readonly axe: { run(): Promise<AxeResults> } }

/** What is wrong with a page as it is now, a line each. */
async function findFaults(desk: Desk): Promise<readonly string[]> {
  const { violations } = await desk.page.evaluate(() => window.axe.run())
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary ?? ''}`),
  )
}

describe.skipIf(obstacle !== undefined)(
  `the workbench for everybody${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let scene: WorkbenchScene
    beforeAll(async () => {
      scene = await WorkbenchScene.open()
    }, 120_000)

    /** Leads to each view, one after the other. */
    const views: Readonly<Record<string, (desk: Desk) => Promise<void>>> = {
      'a terminal': async ({ first }) => {
        await first.run(
          'for g in 0 1 2 3 4 5 6 7; do for c in 0 1 2 3 4 5 6 7; do printf "\\033[3${c};4${g}mt$c$g\\033[0m "; done; echo; done; printf "\\033[31mred\\033[0m text\\n"',
        )
        await first.waitFor('\nred text')
      },
      'a split': async (desk) => {
        await desk.page.keyboard.press('Control+Shift+Backslash')
        await desk.terminal(1).ready()
      },
      files: async (desk) => {
        await desk.first.run(
          'mkdir -p src; printf "# Words\\n\\nconst a = 1\\n" > src/notes.md; echo x > src/b.ts',
        )
        await desk.page.keyboard.press('Control+Shift+E')
        await desk.page.getByRole('treeitem', { name: 'src' }).click()
        await desk.page.getByRole('treeitem', { name: 'notes.md' }).click()
        await desk.page.locator('.cm-content', { hasText: 'Words' }).waitFor()
      },
      git: async (desk) => {
        await desk.command('New terminal')
        await desk.first.ready()
        await desk.first.read(
          'git init -q . 2>/dev/null; git config user.email a@b.c; git config user.name A; git add src/notes.md; git commit -qm First; echo more >> src/notes.md; echo new > new.txt',
        )
        await desk.page.keyboard.press('Control+Shift+Y')
        await desk.page.getByText('new.txt').first().waitFor()
      },
      'a difference': async (desk) => {
        await desk.page.getByRole('complementary').getByText('notes.md').first().click()
        await desk.page.locator('.cm-content:visible', { hasText: 'more' }).first().waitFor()
      },
      search: async (desk) => {
        await desk.page.keyboard.press('Control+Shift+F')
        await desk.page.getByRole('complementary').getByRole('textbox').first().fill('Words')
        await desk.page.keyboard.press('Enter')
        await desk.page.getByRole('complementary').getByText('notes.md').first().waitFor()
      },
      'the palette': async (desk) => {
        await desk.page.keyboard.press('Control+Shift+P')
        await desk.page.getByRole('option', { name: 'Split down' }).waitFor()
      },
      'the way to a file by its name': async (desk) => {
        await desk.page.keyboard.press('Escape')
        await desk.page.keyboard.press('Control+Shift+O')
        await desk.page.getByRole('combobox').fill('notes')
        await desk.page.getByRole('option', { name: /notes/ }).waitFor()
      },
      settings: async (desk) => {
        await desk.page.keyboard.press('Escape')
        await desk.button('Settings').click()
      },
      keys: async (desk) => {
        await desk.page.keyboard.press('Escape')
        await desk.page.keyboard.press('Control+Shift+Slash')
        await desk.page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
      },
      'a new sandbox': async (desk) => {
        await desk.page.keyboard.press('Escape')
        await desk.page.keyboard.press('Control+Shift+B')
        await desk.button('New sandbox').click()
        await desk.page.getByRole('dialog').waitFor()
      },
      sharing: async (desk) => {
        await desk.page.keyboard.press('Escape')
        await desk.page.getByRole('tab').first().click()
        await desk.button('Share terminal').click()
        await desk.button('Create link').click()
        await desk.page.getByLabel('The link works once').waitFor()
      },
      'a question': async (desk) => {
        await desk.page.keyboard.press('Escape')
        await desk.button(/^End /).first().click()
        await desk.page.getByRole('dialog').waitFor()
      },
      'a session that ended': async (desk) => {
        await desk.button('Cancel').click()
        await desk.page.keyboard.press('Control+Shift+Backquote')
        await desk.first.ready()
        await desk.first.run('exit 3')
        await desk.button('New shell').waitFor()
      },
    }

    test.each(['dark', 'light'] as const)(
      'passes the checks of axe in all its views, %s',
      async (colorScheme) => {
        await using desk = await scene.openDesk({ colorScheme })
        await desk.context.addInitScript({ content: axe.source })
        await desk.page.reload()
        await desk.first.waitFor('>')
        const faults: Record<string, readonly string[]> = {}
        for (const [name, lead] of Object.entries(views)) {
          await lead(desk)
          const found = await findFaults(desk)
          if (found.length > 0) faults[name] = found
        }
        expect(faults).toEqual({})
      },
      120_000,
    )

    /** What has the keyboard, by its name. */
    const focused = (desk: Desk): Promise<string> =>
      desk.page.evaluate(() => {
        const element = document.activeElement
        return element?.getAttribute('aria-label') ?? element?.textContent ?? ''
      })

    /** Presses Tab until something has the keyboard, and answers what was passed. */
    async function tabTo(desk: Desk, name: string): Promise<readonly string[]> {
      const passed: string[] = []
      while (passed.length < 60) {
        await desk.page.keyboard.press('Tab')
        passed.push(await focused(desk))
        if (passed.at(-1) === name) return passed
      }
      throw new Error(`${name} is not among ${passed.join(', ')}`)
    }

    test('is used with the keyboard alone', async () => {
      await using desk = await scene.openDesk()
      const { keyboard } = desk.page
      await keyboard.press('Control+Shift+E')
      await keyboard.press('Control+Shift+B')
      expect(await focused(desk)).toBe('Sandboxes')
      expect(await tabTo(desk, 'New terminal')).toEqual(
        expect.arrayContaining(['New sandbox', 'Refresh', 'New terminal in dev', 'Stop dev', 'dev']),
      )
      await tabTo(desk, 'Split down')
      await keyboard.press('Enter')
      await desk.terminal(1).ready()
      await keyboard.type('x')
      await desk.terminal(1).waitFor('> x')
      await keyboard.press('Control+Shift+B')
      await keyboard.type('y')
      await desk.terminal(1).waitFor('> xy')
      await keyboard.press('Control+Shift+B')
      await tabTo(desk, 'New sandbox')
      await keyboard.press('Enter')
      await desk.page.getByRole('dialog', { name: 'New sandbox' }).waitFor()
      await keyboard.press('Escape')
      expect(await focused(desk)).toBe('New sandbox')
      await keyboard.press('Escape')
      await keyboard.type('z')
      await desk.terminal(1).waitFor('> xyz')
      // A tab by its keys: a name, and the end.
      await keyboard.press('Control+Shift+Backquote')
      await desk.first.ready()
      await keyboard.press('Control+Shift+E')
      await desk.page.getByRole('tab').nth(1).focus()
      await keyboard.press('ArrowLeft')
      await keyboard.press('F2')
      await keyboard.type('named')
      await keyboard.press('Enter')
      await desk.page.getByRole('tab', { name: 'named' }).focus()
      await keyboard.press('Delete')
      await desk.page.getByRole('tab', { name: 'named' }).waitFor({ state: 'detached' })
    }, 60_000)
  },
)
