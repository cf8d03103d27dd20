import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually, Random } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { drawBytes, textOf } from './support/screen.ts'
import { type Desk, type TerminalView, WorkbenchScene } from './support/workbench.ts'

const obstacle = findBrowserProblem()
const WAIT = { timeoutMs: 40_000 }
const PASTE_CHARS = 1024 * 1024

describe.skipIf(obstacle !== undefined)(
  `a terminal of the workbench${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let scene: WorkbenchScene
    beforeAll(async () => {
      scene = await WorkbenchScene.open()
    }, 120_000)

    /** The size that programs are told is the one that is drawn. */
    async function expectTold(terminal: TerminalView): Promise<void> {
      // What was moved takes a frame to be measured.
      await eventually(
        async () => {
          const told = await terminal.read('stty size')
          const { drawn } = await terminal.until(() => true)
          return told === `${drawn[1]} ${drawn[0]}`
        },
        { what: 'the size to be told', ...WAIT },
      )
    }

    async function expectExact(terminal: TerminalView): Promise<void> {
      const { cols, rows } = await terminal.until(({ status }) => status === 'attached')
      let [shown, wanted] = ['', '']
      await eventually(
        async () => {
          shown = await terminal.text()
          wanted = textOf(await drawBytes(await scene.readOutput(terminal), cols, rows)).join('\n')
          return shown === wanted
        },
        { what: 'what was written to be shown', ...WAIT },
      ).catch(() => undefined)
      // As they were looked at together: more may have come since.
      expect(shown.split('\n')).toEqual(wanted.split('\n'))
    }

    test('shows what is typed, and what comes of it', async () => {
      await using desk = await scene.openDesk()
      await desk.first.type("printf '%s-%s\\n' one two")
      await desk.first.waitFor("> printf '%s-%s\\n' one two")
      await desk.page.keyboard.press('Enter')
      await desk.first.waitFor('\none-two\n')
      await desk.first.type('abcd')
      for (const key of ['Home', 'Delete', 'End', 'Backspace', 'ArrowLeft'])
        await desk.page.keyboard.press(key)
      await desk.first.type('X')
      await desk.first.waitFor(/> bXc$/)
      await desk.page.keyboard.press('Control+c')
      expect(desk.errors).toEqual([])
    }, 60_000)

    test('tells programs its size, as the window, a split and a border make it', async () => {
      await using desk = await scene.openDesk()
      await expectTold(desk.first)
      const wide = await desk.first.facts()
      await desk.page.setViewportSize({ width: 900, height: 500 })
      await desk.first.until(({ cols }) => cols !== wide?.cols)
      await expectTold(desk.first)
      await desk.page.setViewportSize({ width: 1200, height: 800 })
      await desk.first.until(({ cols }) => cols === wide?.cols)
      await desk.button('Split right').click()
      await desk.terminal(1).ready()
      for (const terminal of [desk.first, desk.terminal(1)]) await expectTold(terminal)
      const { cols } = await desk.first.until(() => true)
      const border = desk.page.getByRole('separator', { name: 'Resize panes' })
      const box = await border.boundingBox()
      if (box === null) throw new Error('There is no border')
      await desk.page.mouse.move(box.x + 2, box.y + 100)
      await desk.page.mouse.down()
      await desk.page.mouse.move(box.x + 150, box.y + 100, { steps: 8 })
      await desk.page.mouse.up()
      const dragged = await desk.first.until((facts) => facts.cols > cols + 10)
      // The keyboard is where it was.
      await desk.page.keyboard.type('still-here')
      await desk.terminal(1).waitFor('> still-here')
      await desk.page.keyboard.press('Control+c')
      for (const terminal of [desk.first, desk.terminal(1)]) await expectTold(terminal)
      await border.focus()
      await desk.page.keyboard.press('ArrowLeft')
      await desk.first.until((facts) => facts.cols < dragged.cols)
      for (const terminal of [desk.first, desk.terminal(1)]) await expectTold(terminal)
    }, 60_000)

    test('draws a full-screen program, and leaves it with the screen before', async () => {
      await using desk = await scene.openDesk()
      await desk.first.run('seq 1 400 | sed "s/^/漢字 🙂 line /" > text; echo before')
      await desk.first.run('vim -u NONE -c "set number ruler showmode hlsearch" text')
      await desk.first.waitFor('"text"')
      await expectExact(desk.first)
      await desk.first.type('200G0/7\n')
      await desk.first.type('dwix🙂y')
      await desk.page.keyboard.press('Escape')
      await desk.page.keyboard.press('Control+f')
      await desk.first.waitFor('line 240')
      await expectExact(desk.first)
      await desk.first.type(':q!\n')
      await desk.first.waitFor('before')
      expect(await desk.first.text()).not.toContain('line 240')
      await expectExact(desk.first)
    }, 60_000)

    test('stays usable in a flood, and Ctrl-C stops it', async () => {
      await using desk = await scene.openDesk()
      await desk.first.run('seq 1 20000000')
      await desk.first.waitFor('2000')
      // Frames go on being drawn while output pours in.
      await desk.page.evaluate(
        () =>
          new Promise<void>((resolve) => {
            let left = 5
            const step = (): void => {
              left -= 1
              if (left === 0) resolve()
              else requestAnimationFrame(step)
            }
            requestAnimationFrame(step)
          }),
      )
      await desk.page.keyboard.press('Control+c')
      // What the kernel discards may end between the two halves of a line end: then it stands over the last line.
      await desk.first.waitFor(/\^C\d*\n+> ?$/)
      expect(await desk.first.text()).not.toContain('20000000\n')
      expect(await desk.first.read('echo alive')).toBe('alive')
    }, 60_000)

    test('shows of a flood what is left of it when all of it is parsed', async () => {
      await using desk = await scene.openDesk()
      await desk.first.run('seq 1 200000; printf "\\033[31mred\\033[m "; seq 1 20 | tr "\\n" "-"; echo')
      await desk.first.waitFor('19-20-')
      await expectExact(desk.first)
      // As many lines as are kept, and not one more.
      expect((await desk.first.text()).split('\n').length).toBeGreaterThan(2_000)
    }, 60_000)

    test('shows and sends emoji, CJK, combining marks and characters that come in pieces', async () => {
      await using desk = await scene.openDesk()
      await desk.first.run(
        String.raw`printf '漢字かな 한국어 🙂🚀 e\xcc\x81 ñ\xcc\x83 \xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9|\n'; printf '\xf0\x9f'; sleep 0.1; printf '\x99'; sleep 0.1; printf '\x82 \xe6\xbc'; sleep 0.1; printf '\xa2|\n'; printf '\xff\xfe bad|\n'; echo "al""l"`,
      )
      await desk.first.waitFor('\nall')
      await desk.first.waitFor('\n🙂 漢|')
      await expectExact(desk.first)
      const typed = 'é漢字🙂e\u0301'
      await desk.first.run('echo "for"" cat"; cat > typed')
      await desk.first.waitFor('\nfor cat')
      await desk.page.keyboard.insertText(typed)
      await desk.page.keyboard.press('Enter')
      await desk.page.keyboard.press('Control+d')
      const sum = createHash('sha256').update(`${typed}\n`).digest('hex')
      expect(await desk.first.read('sha256sum typed')).toStartWith(sum)
    }, 60_000)

    test('passes a paste of 1 MiB on whole', async () => {
      await using desk = await scene.openDesk()
      const random = new Random(11)
      const text = Array.from({ length: PASTE_CHARS }, () => String.fromCharCode(random.int(33, 126))).join(
        '',
      )
      await desk.first.run(
        `stty raw -echo; echo re"ady"; head -c ${PASTE_CHARS} | sha256sum; stty sane; echo`,
      )
      await desk.first.waitFor('ready')
      await desk.first.paste(text)
      await desk.first.waitFor(createHash('sha256').update(text).digest('hex'))
    }, 60_000)

    test('runs nothing of what is pasted at a prompt, whatever keys are in it (threat T23)', async () => {
      await using desk = await scene.openDesk()
      await desk.first.paste('harmless\u{3}touch pwned\necho PW""NED\u{4}\u{1b}[201~\ntouch pwned\n')
      await desk.first.waitFor(/touch pwned\n.*\n.*touch pwned/)
      await desk.page.keyboard.press('Control+c')
      expect(await desk.first.read('test -e pwned || echo none')).toBe('none')
      expect(await desk.first.text()).not.toContain('PWNED')
    }, 60_000)

    test('asks before several lines are pasted where they would run, and only there', async () => {
      await using desk = await scene.openDesk()
      const dialog = desk.page.getByRole('dialog')
      // The shell says that it tells pastes from typing.
      await desk.first.paste('echo a1\necho b2')
      await desk.first.waitFor(/> echo a1\n(?:> )?echo b2$/)
      expect(await dialog.isVisible()).toBe(false)
      await desk.page.keyboard.press('Control+c')
      await desk.first.run('echo "for"" cat"; cat > pasted')
      await desk.first.waitFor('\nfor cat')
      await desk.first.paste('o\u{3}ne\ntwo\nthree\n')
      await dialog.getByRole('heading', { name: 'Paste 3 lines?' }).waitFor()
      await dialog.getByText('1 control character will be removed').waitFor()
      await dialog.getByText('o<^C>ne').waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await desk.first.paste('four\nfive\n')
      await dialog.getByRole('button', { name: 'Paste', exact: true }).click()
      await desk.first.waitFor('five')
      await desk.page.keyboard.press('Control+d')
      expect(await desk.first.read('cat pasted')).toBe('four\nfive')
    }, 60_000)

    /** Where a text stands on the screen, in pixels of the page. */
    async function placeOf(desk: Desk, text: string): Promise<{ readonly x: number; readonly y: number }> {
      const box = await desk.page.locator('.xterm-screen:visible').boundingBox()
      const { drawn } = await desk.first.until(() => true)
      if (box === null) throw new Error('There is no screen')
      const lines = (await desk.first.text()).split('\n').slice(-drawn[1])
      const row = lines.findLastIndex((line) => line.includes(text))
      const column = (lines[row] ?? '').indexOf(text)
      return {
        x: box.x + ((column + 2.5) * box.width) / drawn[0],
        y: box.y + ((row + 0.5) * box.height) / drawn[1],
      }
    }

    test('is used by touch: the row of keys leaves the keyboard where it is, and arrows are as programs ask', async () => {
      const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
      await using desk = await scene.openDesk(phone)
      const key = (name: string) =>
        desk.page.getByRole('toolbar', { name: 'Terminal keys' }).getByRole('button', { name })
      await desk.first.run('echo "for"" cat"; cat -v')
      await desk.first.waitFor('\nfor cat')
      await key('Up').tap()
      await desk.first.waitFor('\n^[[A')
      await desk.first.element.locator('textarea').evaluate((element) => element.blur())
      await desk.first.element.tap()
      await key('Ctrl').tap()
      await desk.page.keyboard.type('c')
      await desk.first.waitFor(/\^C\n> ?$/)
      await desk.first.run(String.raw`printf '\e[?1h'; echo "in"" vim"; cat -v`)
      await desk.first.waitFor('\nin vim')
      await key('Left').tap()
      await desk.first.waitFor('\n^[OD')
      await key('Ctrl').tap()
      await desk.page.keyboard.type('c')
      // What is typed before the program has ended is discarded with the rest.
      await desk.first.waitFor(/\^C\n> ?$/)
      await desk.first.run('echo there > tapped.txt; clear; ls tap*')
      await desk.first.waitFor(/\ntapped\.txt\n|^tapped\.txt\n/)
      const path = await placeOf(desk, 'tapped.txt')
      await desk.page.touchscreen.tap(path.x, path.y)
      await desk.page.locator('.cm-content', { hasText: 'there' }).waitFor()
    }, 60_000)

    test('is scrolled with a finger, through what is above and in a full-screen program', async () => {
      const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
      await using desk = await scene.openDesk(phone)
      const devtools = await desk.context.newCDPSession(desk.page)
      const shown = () => desk.page.locator('.xterm-rows').innerText()
      const swipe = async (from: number, to: number): Promise<void> => {
        const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ys: readonly number[]) =>
          devtools.send('Input.dispatchTouchEvent', { type, touchPoints: ys.map((y) => ({ x: 150, y })) })
        await touch('touchStart', [from])
        for (let step = 1; step <= 10; step += 1) await touch('touchMove', [from + ((to - from) * step) / 10])
        await touch('touchEnd', [])
      }
      const until = (text: string) =>
        eventually(async () => (await shown()).includes(text), { what: text, ...WAIT })
      await desk.first.run('clear; for i in $(seq 300); do echo "row-$i."; done')
      await until('row-300.')
      expect(await shown()).not.toContain('row-250.')
      await eventually(
        async () => {
          await swipe(200, 600)
          return (await shown()).includes('row-200.')
        },
        { what: 'what is above', ...WAIT },
      )
      await desk.first.run('seq -f "row-%g." 300 > rows; less rows')
      await until('row-1.')
      await eventually(
        async () => {
          await swipe(600, 200)
          return (await shown()).includes('row-90.')
        },
        { what: 'what is below', ...WAIT },
      )
      expect(await desk.page.evaluate(() => [scrollY, visualViewport?.pageTop])).toEqual([0, 0])
    }, 60_000)

    test('copies what is selected, by keys and on selecting', async () => {
      await using desk = await scene.openDesk()
      await desk.first.run('clear; echo first-word second_word')
      await desk.first.waitFor(/word\n> ?$/)
      const first = await placeOf(desk, 'first-word')
      await desk.page.mouse.dblclick(first.x, first.y)
      await desk.page.keyboard.press('Control+Shift+C')
      await eventually(async () => (await desk.clipboard()) === 'first-word', { what: 'a copy', ...WAIT })
      await desk.command('Settings')
      await desk.page.getByRole('checkbox', { name: /Copy on select/ }).check()
      await desk.button('Done').click()
      const second = await placeOf(desk, 'second_word')
      await desk.page.mouse.dblclick(second.x, second.y)
      await eventually(async () => (await desk.clipboard()) === 'second_word', { what: 'a copy', ...WAIT })
      // The keyboard went back to the terminal.
      await desk.page.keyboard.type('echo back')
      await desk.first.waitFor('> echo back')
    }, 60_000)

    test('opens addresses and files that it shows, and says where they lead (threat T23)', async () => {
      await using desk = await scene.openDesk()
      const { page } = desk
      await desk.context.route('http://*.invalid/**', (route) => route.fulfill({ body: 'there' }))
      const line = page.locator('.sandwire-link-line')
      /** Goes to a text of the screen, sees what is said of it, and clicks there with Ctrl. */
      const follow = async (text: string, words: string): Promise<void> => {
        const { x, y } = await placeOf(desk, text)
        await page.mouse.move(x, y + 60)
        await page.mouse.move(x, y)
        await line.getByText(words, { exact: true }).waitFor()
        await page.mouse.click(x, y)
        await page.keyboard.down('Control')
        await page.mouse.click(x, y)
        await page.keyboard.up('Control')
      }
      const opened: string[] = []
      desk.context.on('page', (other) => opened.push(other.url()))
      await desk.first.run('mkdir -p src; printf "one\\ntwo\\n" > src/sample.txt; clear')
      await desk.first.run(
        String.raw`printf '%s and %s\n' http://example.invalid/page src/sample.txt:2; printf '\e]8;;http://evil.invalid/\e\\http://paypal.invalid\e]8;;\e\\\n'`,
      )
      await desk.first.waitFor('\nhttp://paypal.invalid')
      await follow('http://example.invalid/page and', 'Ctrl+click opens http://example.invalid/page')
      await eventually(() => opened.length > 0, { what: 'a page', ...WAIT })

      await follow('http://paypal.invalid', 'Ctrl+click opens http://evil.invalid/')
      const question = page.getByRole('dialog', { name: 'Open this link?' })
      await question.getByText('http://paypal.invalid', { exact: true }).waitFor()
      await question.getByText('http://evil.invalid/', { exact: true }).waitFor()
      await question.getByRole('button', { name: 'Cancel' }).click()
      await follow('http://paypal.invalid', 'Ctrl+click opens http://evil.invalid/')
      await question.getByRole('button', { name: 'Open' }).click()
      await eventually(() => opened.length > 1, { what: 'another page', ...WAIT })
      expect(opened).toEqual(['http://example.invalid/page', 'http://evil.invalid/'])

      await page.bringToFront()
      await follow('src/sample.txt:2', 'Ctrl+click opens src/sample.txt:2')
      await page.getByRole('tab', { name: 'sample.txt' }).waitFor()
      await page.locator('.cm-content', { hasText: 'two' }).waitFor()
    }, 60_000)
  },
)
