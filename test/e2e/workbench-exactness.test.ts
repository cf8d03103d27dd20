import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually, openFaultProxy } from '@sandwire/testing'
import { findBrowserProblem, openBrowser } from './support/browser.ts'
import { workerdOf } from './support/deployment.ts'
import { colorsOf, drawBytes, textOf } from './support/screen.ts'
import { type TerminalView, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem()

describe.skipIf(problem !== undefined)(
  `the screen of a workbench terminal${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    /** Expects screen, colors and scrollback to equal those of an emulator that got every byte. */
    async function expectExact(terminal: TerminalView): Promise<void> {
      const { cols, rows } = await terminal.until(({ status }) => status === 'attached')
      /** Actual and expected state, read together, since output may arrive at any time. */
      const [shown, wanted] = [
        { text: [] as readonly string[], colors: [] as readonly string[] },
        { text: [] as readonly string[], colors: [] as readonly string[] },
      ]
      await eventually(
        async () => {
          const reference = await drawBytes(await fixture.readOutput(terminal), cols, rows)
          Object.assign(wanted, { text: textOf(reference), colors: colorsOf(reference) })
          Object.assign(shown, {
            text: (await terminal.text()).split('\n'),
            colors: await terminal.colors(),
          })
          return Bun.deepEquals(shown, wanted)
        },
        { what: 'the last byte to be drawn' },
      ).catch(() => undefined)
      expect(shown).toEqual(wanted)
      expect(shown.colors.filter((row) => /[1-7]:n\d/.test(row)).length).toBeGreaterThan(rows / 2)
    }

    /**
     * Counts with colors, wide characters and cursor movements, slowly enough to be interrupted. It uses only colors that the page draws
     * unchanged; black and white may be adjusted for contrast.
     */
    const COUNT =
      'for i in $(seq 1 500); do printf "\\033[3%dmn%d 漢字 🙂 e\\314\\201 \\033[0m|\\033[3D\\033[2P\\r\\033[40C%d\\n" $((i % 6 + 1)) $i $i; sleep 0.002; done; echo "fin""ished"'

    test('is exact after workerd was killed during output', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run(COUNT)
      const states = new Set<string>()
      for (const at of ['n1 ', 'n120 ', 'n240 ', 'n360 ']) {
        await workbench.first.waitFor(at)
        const pid = workerdOf(fixture.host)
        if (pid === undefined) throw new Error('There is no workerd')
        process.kill(pid, 'SIGKILL')
        states.add((await workbench.first.until(({ status }) => status !== 'attached')).status)
        await workbench.page.locator('.banner.waiting').waitFor()
        expect(await workbench.page.locator('.banner.waiting').innerText()).toMatch(/lost|onnecting/)
        await workbench.first.until(({ status }) => status === 'attached')
      }
      await workbench.first.waitFor('finished')
      expect([...states]).toContain('reconnecting')
      await workbench.page.locator('.banner.waiting').waitFor({ state: 'detached' })
      await expectExact(workbench.first)
      expect(workbench.errors).toEqual([])
    })

    test('is exact after a reload, during output and at rest', async () => {
      await using workbench = await fixture.openPage()
      const session = await workbench.first.session()
      await workbench.first.run(COUNT)
      await workbench.first.waitFor('n100 ')
      await workbench.page.reload()
      await workbench.first.until(({ status, role }) => status === 'attached' && role === 'driver')
      expect(await workbench.first.session()).toBe(session)
      await workbench.first.waitFor('finished')
      await expectExact(workbench.first)
      await workbench.page.reload()
      await workbench.first.waitFor('finished')
      await expectExact(workbench.first)
      expect(await workbench.first.read('echo still $((40 + 2))')).toBe('still 42')
      await expectExact(workbench.first)
    })

    /**
     * Erases up to the corner, where xterm.js looks for a missing line. Then fills every row to its last column, again after a resize, and
     * shows typed keys as line drawing in the third row.
     */
    const FULL_SCREEN =
      'draw() { read -r r c < <(stty size); for i in $(seq 1 $r); do printf "\\033(B\\033[$i;1H\\033[7m%-*s\\033[0m" $c "row $i of $c"; done; printf "\\033[3;5H\\033(0%s" "$typed"; }; ' +
      'printf "\\033[99;999H\\033[1J\\033[?1049h"; draw; trap draw WINCH; while :; do read -rsn1 -t 0.2 k && typed=$typed$k && printf %s "$k"; done'

    test('is exact in a full-screen program that was narrowed before a reload', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run(FULL_SCREEN)
      const { cols: wide } = await workbench.first.until(({ status }) => status === 'attached')
      await workbench.first.waitFor(`row 2 of ${wide}`)
      await workbench.command('Split right')
      const { cols, rows } = await workbench.first.until((facts) => facts.cols < wide)
      await workbench.first.waitFor(`row ${rows} of ${cols}`)
      await workbench.first.type('lq')
      await workbench.first.waitFor('row ┌─')
      await workbench.page.reload()
      await workbench.first.until(({ status, role }) => status === 'attached' && role === 'driver')
      await workbench.first.waitFor('row ┌─')
      await workbench.first.type('k')
      const shown = await workbench.first.waitFor('row ┌─┐')
      const wanted = Array.from({ length: rows }, (_, row) => `row ${row + 1} of ${cols}`)
      wanted[2] = `row ┌─┐${wanted[2]?.slice(7)}`
      expect(shown.split('\n').map((row) => row.trimEnd())).toEqual(wanted)
    })

    test('is exact after a network outage', async () => {
      const { port } = fixture.host
      await using proxy = openFaultProxy({ target: { port } })
      await using browser = await openBrowser([
        `--host-resolver-rules=MAP *.localhost:${port} 127.0.0.1:${proxy.port}`,
      ])
      await using workbench = await fixture.openPage({ browser })
      expect(proxy.stats.accepted).toBeGreaterThan(0)
      await workbench.first.run(COUNT)
      await workbench.first.waitFor('n100 ')
      proxy.setFaults({ newConnections: 'refuse' })
      proxy.disconnectAll('reset')
      const banner = workbench.page.locator('.banner.waiting')
      await banner.filter({ hasText: /Reconnecting in \d+ s/ }).waitFor()
      proxy.setFaults({ newConnections: 'accept' })
      await banner.waitFor({ state: 'detached' })
      await workbench.first.waitFor('finished')
      await expectExact(workbench.first)
    })
  },
)
