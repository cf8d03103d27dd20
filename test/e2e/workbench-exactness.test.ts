import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually, openFaultProxy } from '@sandwire/testing'
import { findBrowserProblem, openBrowser } from './support/browser.ts'
import { workerdOf } from './support/front-door.ts'
import { colorsOf, drawBytes, textOf } from './support/screen.ts'
import { type TerminalView, WorkbenchScene } from './support/workbench.ts'

const obstacle = findBrowserProblem()
const WAIT = { timeoutMs: 30_000 }

describe.skipIf(obstacle !== undefined)(
  `what a terminal of the workbench shows${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let scene: WorkbenchScene
    beforeAll(async () => {
      scene = await WorkbenchScene.open()
    }, 120_000)

    /** The screen with its colors and what is above it are those of an emulator that was fed every byte. */
    async function expectExact(terminal: TerminalView): Promise<void> {
      const { cols, rows } = await terminal.until(({ status }) => status === 'attached')
      /** What is shown, and what should be: read together, as more may come at any time. */
      const [shown, wanted] = [
        { text: [] as readonly string[], colors: [] as readonly string[] },
        { text: [] as readonly string[], colors: [] as readonly string[] },
      ]
      await eventually(
        async () => {
          const reference = await drawBytes(await scene.readOutput(terminal), cols, rows)
          Object.assign(wanted, { text: textOf(reference), colors: colorsOf(reference) })
          Object.assign(shown, {
            text: (await terminal.text()).split('\n'),
            colors: await terminal.colors(),
          })
          return Bun.deepEquals(shown, wanted)
        },
        { what: 'the last byte to be drawn', ...WAIT },
      ).catch(() => undefined)
      expect(shown).toEqual(wanted)
      expect(shown.colors.filter((row) => /[1-7]:n\d/.test(row)).length).toBeGreaterThan(rows / 2)
    }

    /**
     * Counts with colors, wide characters and moves of the cursor, slowly enough to be interrupted. The colors are those that a page draws
     * as they are on any ground: black and white it may have to make readable.
     */
    const COUNT =
      'for i in $(seq 1 1500); do printf "\\033[3%dmn%d 漢字 🙂 e\\314\\201 \\033[0m|\\033[3D\\033[2P\\r\\033[40C%d\\n" $((i % 6 + 1)) $i $i; sleep 0.002; done; echo "fin""ished"'

    test('is exact after workerd was killed in the middle of output', async () => {
      await using desk = await scene.openDesk()
      await desk.first.run(COUNT)
      const states = new Set<string>()
      for (const at of ['n1 ', 'n400 ', 'n800 ', 'n1200 ']) {
        await desk.first.waitFor(at)
        const pid = workerdOf(scene.host)
        if (pid === undefined) throw new Error('There is no workerd')
        process.kill(pid, 'SIGKILL')
        states.add((await desk.first.until(({ status }) => status !== 'attached')).status)
        await desk.page.locator('.banner.waiting').waitFor()
        expect(await desk.page.locator('.banner.waiting').innerText()).toMatch(/lost|onnecting/)
        await desk.first.until(({ status }) => status === 'attached')
      }
      await desk.first.waitFor('finished')
      expect([...states]).toContain('reconnecting')
      await desk.page.locator('.banner.waiting').waitFor({ state: 'detached' })
      await expectExact(desk.first)
      expect(desk.errors).toEqual([])
    }, 120_000)

    test('is exact after the page was loaded again, in the middle of output and at rest', async () => {
      await using desk = await scene.openDesk()
      const session = await desk.first.session()
      await desk.first.run(COUNT)
      await desk.first.waitFor('n100 ')
      await desk.page.reload()
      await desk.first.until(({ status, role }) => status === 'attached' && role === 'driver')
      expect(await desk.first.session()).toBe(session)
      await desk.first.waitFor('finished')
      await expectExact(desk.first)
      await desk.page.reload()
      await desk.first.waitFor('finished')
      await expectExact(desk.first)
      expect(await desk.first.read('echo still $((40 + 2))')).toBe('still 42')
      await expectExact(desk.first)
    }, 120_000)

    /**
     * Erases up to the corner, where xterm.js looks for a line that is not there. Then fills every row to its last column, again when
     * the size changes, and shows keys as line drawing from the third row on.
     */
    const FULL_SCREEN =
      'draw() { read -r r c < <(stty size); for i in $(seq 1 $r); do printf "\\033(B\\033[$i;1H\\033[7m%-*s\\033[0m" $c "row $i of $c"; done; printf "\\033[3;5H\\033(0"; }; ' +
      'printf "\\033[99;999H\\033[1J\\033[?1049h"; draw; trap draw WINCH; while :; do read -rsn1 -t 0.2 k && printf %s "$k"; done'

    test('is exact in a full-screen program that got narrower before the page was loaded again', async () => {
      await using desk = await scene.openDesk()
      await desk.first.run(FULL_SCREEN)
      const { cols: wide } = await desk.first.until(({ status }) => status === 'attached')
      await desk.first.waitFor(`row 2 of ${wide}`)
      await desk.command('Split right')
      const { cols, rows } = await desk.first.until((facts) => facts.cols < wide)
      await desk.first.waitFor(`row ${rows} of ${cols}`)
      await desk.first.type('lq')
      await desk.first.waitFor('row ┌─')
      await desk.page.reload()
      await desk.first.until(({ status, role }) => status === 'attached' && role === 'driver')
      await desk.first.waitFor('row ┌─')
      await desk.first.type('k')
      const shown = await desk.first.waitFor('row ┌─┐')
      const wanted = Array.from({ length: rows }, (_, row) => `row ${row + 1} of ${cols}`)
      wanted[2] = `row ┌─┐${wanted[2]?.slice(7)}`
      expect(shown.split('\n').map((row) => row.trimEnd())).toEqual(wanted)
    }, 60_000)

    test('is exact after the network was away', async () => {
      const { port } = scene.host
      await using proxy = openFaultProxy({ target: { port } })
      await using browser = await openBrowser([
        `--host-resolver-rules=MAP *.localhost:${port} 127.0.0.1:${proxy.port}`,
      ])
      await using desk = await scene.openDesk({ browser })
      expect(proxy.stats.accepted).toBeGreaterThan(0)
      await desk.first.run(COUNT)
      await desk.first.waitFor('n100 ')
      proxy.setFaults({ newConnections: 'refuse' })
      proxy.cutAll('reset')
      const banner = desk.page.locator('.banner.waiting')
      await banner.filter({ hasText: /Reconnecting in \d+ s/ }).waitFor()
      proxy.setFaults({ newConnections: 'accept' })
      await banner.waitFor({ state: 'detached' })
      await desk.first.waitFor('finished')
      await expectExact(desk.first)
    }, 120_000)
  },
)
