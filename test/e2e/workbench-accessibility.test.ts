import { beforeAll, describe, expect, test } from 'bun:test'
import type { AxeResults, RunOptions } from 'axe-core'
import axe from 'axe-core'
import { findBrowserProblem } from './support/browser.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem()

/** The rules of axe that look at colors. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block']

declare const window: { readonly axe: { run(options: RunOptions): Promise<AxeResults> } }

/** Accessibility violations of the page in its current state, one per line; of all rules by default. */
async function findViolations(
  workbench: WorkbenchPage,
  rules: readonly string[] = [],
): Promise<readonly string[]> {
  const { violations } = await workbench.page.evaluate(
    (only) => window.axe.run(only.length === 0 ? {} : { runOnly: only }),
    [...rules],
  )
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary ?? ''}`),
  )
}

describe.skipIf(problem !== undefined)(
  `accessibility of the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    /** Opens each view, one after the other. */
    const views: Readonly<Record<string, (workbench: WorkbenchPage) => Promise<void>>> = {
      'a terminal': async ({ first }) => {
        await first.run(
          'for g in 0 1 2 3 4 5 6 7; do for c in 0 1 2 3 4 5 6 7; do printf "\\033[3${c};4${g}mt$c$g\\033[0m "; done; echo; done; printf "\\033[31mred\\033[0m text\\n"',
        )
        await first.waitFor('\nred text')
      },
      'a split': async (workbench) => {
        await workbench.page.keyboard.press('Control+Shift+Backslash')
        await workbench.terminal(1).ready()
      },
      files: async (workbench) => {
        await workbench.first.run(
          'mkdir -p src; printf "# Words\\n\\nconst a = 1\\n" > src/notes.md; echo x > src/b.ts',
        )
        await workbench.page.keyboard.press('Control+Shift+E')
        await workbench.page.getByRole('treeitem', { name: 'src' }).click()
        await workbench.page.getByRole('treeitem', { name: 'notes.md' }).click()
        await workbench.page.locator('.cm-content', { hasText: 'Words' }).waitFor()
      },
      git: async (workbench) => {
        await workbench.command('New terminal')
        await workbench.first.ready()
        await workbench.first.read(
          'git init -q . 2>/dev/null; git config user.email a@b.c; git config user.name A; git add src/notes.md; git commit -qm First; echo more >> src/notes.md; echo new > new.txt',
        )
        await workbench.page.keyboard.press('Control+Shift+Y')
        await workbench.page.getByText('new.txt').first().waitFor()
      },
      'a difference': async (workbench) => {
        await workbench.page.getByRole('complementary').getByText('notes.md').first().click()
        await workbench.page.locator('.cm-content:visible', { hasText: 'more' }).first().waitFor()
      },
      search: async (workbench) => {
        await workbench.page.keyboard.press('Control+Shift+F')
        await workbench.page.getByRole('complementary').getByRole('textbox').first().fill('Words')
        await workbench.page.keyboard.press('Enter')
        await workbench.page.getByRole('complementary').getByText('notes.md').first().waitFor()
      },
      'the palette': async (workbench) => {
        await workbench.page.keyboard.press('Control+Shift+P')
        await workbench.page.getByRole('option', { name: 'Split down' }).waitFor()
      },
      'the way to a file by its name': async (workbench) => {
        await workbench.page.keyboard.press('Escape')
        await workbench.page.keyboard.press('Control+Shift+O')
        await workbench.page.getByRole('combobox').fill('notes')
        await workbench.page.getByRole('option', { name: /notes/ }).waitFor()
      },
      settings: async (workbench) => {
        await workbench.page.keyboard.press('Escape')
        await workbench.button('Settings').click()
      },
      usage: async (workbench) => {
        await workbench.page.keyboard.press('Escape')
        await workbench.button('Usage').click()
        const running = workbench.page.getByRole('row', { name: /^Running sandboxes [1-9]/ })
        await running.waitFor()
      },
      keys: async (workbench) => {
        await workbench.page.keyboard.press('Escape')
        await workbench.page.keyboard.press('Control+Shift+Slash')
        await workbench.page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
      },
      'a new sandbox': async (workbench) => {
        await workbench.page.keyboard.press('Escape')
        await workbench.page.keyboard.press('Control+Shift+B')
        await workbench.button('New sandbox').click()
        await workbench.page.getByRole('dialog').waitFor()
      },
      sharing: async (workbench) => {
        await workbench.page.keyboard.press('Escape')
        await workbench.page.getByRole('tab').first().click()
        await workbench.button('Share terminal').click()
        await workbench.button('Create link').click()
        await workbench.page.getByLabel('The link works once').waitFor()
      },
      'a question': async (workbench) => {
        await workbench.page.keyboard.press('Escape')
        await workbench.button(/^End /).first().click()
        await workbench.page.getByRole('dialog').waitFor()
      },
      'a session that ended': async (workbench) => {
        await workbench.button('Cancel').click()
        await workbench.page.keyboard.press('Control+Shift+Backquote')
        await workbench.first.ready()
        await workbench.first.run('exit 3')
        await workbench.button('New shell').waitFor()
      },
    }

    test('passes the checks of axe in all its views, dark and light', async () => {
      await using workbench = await fixture.openPage()
      await workbench.context.addInitScript({ content: axe.source })
      await workbench.page.reload()
      await workbench.first.waitFor('>')
      const violations: Record<string, readonly string[]> = {}
      for (const [name, lead] of Object.entries(views)) {
        await lead(workbench)
        for (const colorScheme of ['dark', 'light'] as const) {
          await workbench.page.emulateMedia({ colorScheme })
          await workbench.page.locator(`[data-theme=${colorScheme}]`).waitFor()
          // Only contrast depends on the color scheme.
          const found = await findViolations(workbench, colorScheme === 'dark' ? [] : COLOR_RULES)
          if (found.length > 0) violations[`${name}, ${colorScheme}`] = found
        }
      }
      expect(violations).toEqual({})
    })

    /** Accessible name of the focused element. */
    const focused = (workbench: WorkbenchPage): Promise<string> =>
      workbench.page.evaluate(() => {
        const element = document.activeElement
        return element?.getAttribute('aria-label') ?? element?.textContent ?? ''
      })

    /** Presses Tab until an element has the focus, and returns the names passed on the way. */
    async function tabTo(workbench: WorkbenchPage, name: string): Promise<readonly string[]> {
      const passed: string[] = []
      while (passed.length < 60) {
        await workbench.page.keyboard.press('Tab')
        passed.push(await focused(workbench))
        if (passed.at(-1) === name) return passed
      }
      throw new Error(`${name} is not among ${passed.join(', ')}`)
    }

    test('is used with the keyboard alone', async () => {
      await using workbench = await fixture.openPage()
      const { keyboard } = workbench.page
      await keyboard.press('Control+Shift+E')
      await keyboard.press('Control+Shift+B')
      expect(await focused(workbench)).toBe('Sandboxes')
      expect(await tabTo(workbench, 'New terminal')).toEqual(
        expect.arrayContaining(['New sandbox', 'Refresh', 'New terminal in dev', 'Stop dev', 'dev']),
      )
      await tabTo(workbench, 'Split down')
      await keyboard.press('Enter')
      await workbench.terminal(1).ready()
      await keyboard.type('x')
      await workbench.terminal(1).waitFor('> x')
      await keyboard.press('Control+Shift+B')
      await keyboard.type('y')
      await workbench.terminal(1).waitFor('> xy')
      await keyboard.press('Control+Shift+B')
      await tabTo(workbench, 'New sandbox')
      await keyboard.press('Enter')
      await workbench.page.getByRole('dialog', { name: 'New sandbox' }).waitFor()
      await keyboard.press('Escape')
      expect(await focused(workbench)).toBe('New sandbox')
      await keyboard.press('Escape')
      await keyboard.type('z')
      await workbench.terminal(1).waitFor('> xyz')
      // Renames and closes a tab by keys.
      await keyboard.press('Control+Shift+Backquote')
      await workbench.first.ready()
      await keyboard.press('Control+Shift+E')
      await workbench.page.getByRole('tab').nth(1).focus()
      await keyboard.press('ArrowLeft')
      await keyboard.press('F2')
      await keyboard.type('named')
      await keyboard.press('Enter')
      await workbench.page.getByRole('tab', { name: 'named' }).focus()
      await keyboard.press('Delete')
      await workbench.page.getByRole('tab', { name: 'named' }).waitFor({ state: 'detached' })
    })
  },
)
