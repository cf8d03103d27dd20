import { beforeAll, describe, expect, test } from 'bun:test'
import { findBrowserProblem } from './support/browser.ts'
import { type WorkbenchPage, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem()

interface Drawn {
  readonly text: string
  readonly ground: string
}

describe.skipIf(problem !== undefined)(
  `the colors of a terminal${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    /** Computed colors of a word. */
    async function drawn({ page }: WorkbenchPage, word: string): Promise<Drawn> {
      const span = page.locator('.xterm-rows span').getByText(word, { exact: true })
      return span.evaluate((element) => {
        const { color, backgroundColor } = getComputedStyle(element)
        return { text: color, ground: backgroundColor }
      })
    }

    /** Mean of the color channels, from 0 to 255. */
    function lightness(color: string): number {
      const parts = (color.match(/\d+/g) ?? []).slice(0, 3).map(Number)
      return parts.reduce((sum, part) => sum + part, 0) / 3
    }

    test.each(['dark', 'light'] as const)(
      'match their names and swap in reverse video, %s',
      async (colorScheme) => {
        await using workbench = await fixture.openPage({ colorScheme })
        await workbench.first.run(
          String.raw`clear; printf '%b' '\e[40mNI''GHT\e[0m \e[30;47mPA''PER\e[0m \e[7mTUR''NED\e[0m \e[1;7mSTR''ONG\e[0m \e[7;41mRE''DDISH\e[0m PL''AIN\n'`,
        )
        await workbench.first.waitFor(/PLAIN\n/)
        const night = await drawn(workbench, 'NIGHT')
        expect(lightness(night.ground)).toBeLessThan(50)
        expect(lightness(night.text)).toBeGreaterThan(110)
        const paper = await drawn(workbench, 'PAPER')
        expect(lightness(paper.ground)).toBeGreaterThan(190)
        expect(lightness(paper.text)).toBeLessThan(80)

        const plain = await workbench.page
          .locator('.xterm-rows')
          .evaluate((rows) => getComputedStyle(rows).color)
        const ground = await workbench.page
          .locator('.xterm-scrollable-element')
          .first()
          .evaluate((element) => getComputedStyle(element).backgroundColor)
        for (const word of ['TURNED', 'STRONG'])
          expect(await drawn(workbench, word)).toEqual({ text: ground, ground: plain })
        // The former background color stays distinguishable from the text.
        expect((await drawn(workbench, 'REDDISH')).ground).toBe(plain)
      },
    )

    test('are announced to programs', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run('clear; echo "$TERM-$COLORTERM"')
      await workbench.first.waitFor('xterm-256color-truecolor')
    })
  },
)
