import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually, Random } from '@sandwire/testing'
import { findBrowserProblem } from './support/browser.ts'
import { drawBytes, textOf } from './support/screen.ts'
import { type WorkbenchPage, type TerminalView, WorkbenchFixture } from './support/workbench.ts'

const problem = findBrowserProblem()
const PASTE_CHARS = 1024 * 1024

describe.skipIf(problem !== undefined)(
  `a terminal of the workbench${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let fixture: WorkbenchFixture
    beforeAll(async () => {
      fixture = await WorkbenchFixture.open()
    })

    /** Expects the reported size to be the drawn one. */
    async function expectTold(terminal: TerminalView): Promise<void> {
      // Measuring takes a frame.
      await eventually(
        async () => {
          const told = await terminal.read('stty size')
          const { drawn } = await terminal.until(() => true)
          return told === `${drawn[1]} ${drawn[0]}`
        },
        { what: 'the size to be told' },
      )
    }

    async function expectExact(terminal: TerminalView): Promise<void> {
      const { cols, rows } = await terminal.until(({ status }) => status === 'attached')
      let [shown, wanted] = ['', '']
      await eventually(
        async () => {
          shown = await terminal.text()
          wanted = textOf(await drawBytes(await fixture.readOutput(terminal), cols, rows)).join('\n')
          return shown === wanted
        },
        { what: 'what was written to be shown' },
      ).catch(() => undefined)
      // As compared; more output may have arrived since.
      expect(shown.split('\n')).toEqual(wanted.split('\n'))
    }

    test('shows typed commands and their output', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.type("printf '%s-%s\\n' one two")
      await workbench.first.waitFor("> printf '%s-%s\\n' one two")
      await workbench.page.keyboard.press('Enter')
      await workbench.first.waitFor('\none-two\n')
      await workbench.first.type('abcd')
      for (const key of ['Home', 'Delete', 'End', 'Backspace', 'ArrowLeft'])
        await workbench.page.keyboard.press(key)
      await workbench.first.type('X')
      await workbench.first.waitFor(/> bXc$/)
      await workbench.page.keyboard.press('Control+c')
      expect(workbench.errors).toEqual([])
    })

    test('reports its size after resizing, splitting and dragging', async () => {
      await using workbench = await fixture.openPage()
      await expectTold(workbench.first)
      const wide = await workbench.first.facts()
      await workbench.page.setViewportSize({ width: 900, height: 500 })
      await workbench.first.until(({ cols }) => cols !== wide?.cols)
      await expectTold(workbench.first)
      await workbench.page.setViewportSize({ width: 1200, height: 800 })
      await workbench.first.until(({ cols }) => cols === wide?.cols)
      await workbench.button('Split right').click()
      await workbench.terminal(1).ready()
      for (const terminal of [workbench.first, workbench.terminal(1)]) await expectTold(terminal)
      const { cols } = await workbench.first.until(() => true)
      const border = workbench.page.getByRole('separator', { name: 'Resize panes' })
      const box = await border.boundingBox()
      if (box === null) throw new Error('There is no border')
      await workbench.page.mouse.move(box.x + 2, box.y + 100)
      await workbench.page.mouse.down()
      await workbench.page.mouse.move(box.x + 150, box.y + 100, { steps: 8 })
      await workbench.page.mouse.up()
      const dragged = await workbench.first.until((facts) => facts.cols > cols + 10)
      // The focus stays.
      await workbench.page.keyboard.type('still-here')
      await workbench.terminal(1).waitFor('> still-here')
      await workbench.page.keyboard.press('Control+c')
      for (const terminal of [workbench.first, workbench.terminal(1)]) await expectTold(terminal)
      await border.focus()
      await workbench.page.keyboard.press('ArrowLeft')
      await workbench.first.until((facts) => facts.cols < dragged.cols)
      for (const terminal of [workbench.first, workbench.terminal(1)]) await expectTold(terminal)
    })

    test('draws a full-screen program and restores the screen', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run('seq 1 400 | sed "s/^/漢字 🙂 line /" > text; echo before')
      await workbench.first.run('vim -u NONE -c "set number ruler showmode hlsearch" text')
      await workbench.first.waitFor('"text"')
      await expectExact(workbench.first)
      await workbench.first.type('200G0/7\n')
      await workbench.first.type('dwix🙂y')
      await workbench.page.keyboard.press('Escape')
      await workbench.page.keyboard.press('Control+f')
      await workbench.first.waitFor('line 240')
      await expectExact(workbench.first)
      await workbench.first.type(':q!\n')
      await workbench.first.waitFor('before')
      expect(await workbench.first.text()).not.toContain('line 240')
      await expectExact(workbench.first)
    })

    test('stays usable during a flood of output, which Ctrl-C stops', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run('seq 1 20000000')
      await workbench.first.waitFor('2000')
      // Frames are drawn during the flood.
      await workbench.page.evaluate(
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
      await workbench.page.keyboard.press('Control+c')
      // The kernel may discard up to the middle of a CR LF, which leaves ^C on the last line.
      await workbench.first.waitFor(/\^C\d*\n+> ?$/)
      expect(await workbench.first.text()).not.toContain('20000000\n')
      expect(await workbench.first.read('echo alive')).toBe('alive')
    })

    test('shows the end of a flood of output exactly', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run('seq 1 200000; printf "\\033[31mred\\033[m "; seq 1 20 | tr "\\n" "-"; echo')
      await workbench.first.waitFor('19-20-')
      await expectExact(workbench.first)
      // As many lines as the scrollback holds.
      expect((await workbench.first.text()).split('\n').length).toBeGreaterThan(2_000)
    })

    test('handles emoji, CJK, combining marks and split characters', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run(
        String.raw`printf '漢字かな 한국어 🙂🚀 e\xcc\x81 ñ\xcc\x83 \xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9|\n'; printf '\xf0\x9f'; sleep 0.1; printf '\x99'; sleep 0.1; printf '\x82 \xe6\xbc'; sleep 0.1; printf '\xa2|\n'; printf '\xff\xfe bad|\n'; echo "al""l"`,
      )
      await workbench.first.waitFor('\nall')
      await workbench.first.waitFor('\n🙂 漢|')
      await expectExact(workbench.first)
      const typed = 'é漢字🙂e\u0301'
      await workbench.first.run('echo "for"" cat"; cat > typed')
      await workbench.first.waitFor('\nfor cat')
      await workbench.page.keyboard.insertText(typed)
      await workbench.page.keyboard.press('Enter')
      await workbench.page.keyboard.press('Control+d')
      const sum = createHash('sha256').update(`${typed}\n`).digest('hex')
      expect(await workbench.first.read('sha256sum typed')).toStartWith(sum)
    })

    test('delivers a paste of 1 MiB', async () => {
      await using workbench = await fixture.openPage()
      const random = new Random(11)
      const text = Array.from({ length: PASTE_CHARS }, () => String.fromCharCode(random.int(33, 126))).join(
        '',
      )
      await workbench.first.run(
        `stty raw -echo; echo re"ady"; head -c ${PASTE_CHARS} | sha256sum; stty sane; echo`,
      )
      await workbench.first.waitFor('ready')
      await workbench.first.paste(text)
      await workbench.first.waitFor(createHash('sha256').update(text).digest('hex'))
    })

    test('runs nothing of a paste at a prompt, whatever control characters it has (threat T23)', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.paste('harmless\u{3}touch pwned\necho PW""NED\u{4}\u{1b}[201~\ntouch pwned\n')
      await workbench.page.getByRole('dialog').getByRole('button', { name: 'Paste', exact: true }).click()
      await workbench.first.waitFor(/touch pwned\n.*\n.*touch pwned/)
      await workbench.page.keyboard.press('Control+c')
      // Ctrl-C discards pending input, so the next command waits for the prompt.
      await workbench.first.waitFor(/\^C\n+> ?$/)
      expect(await workbench.first.read('test -e pwned || echo none')).toBe('none')
      expect(await workbench.first.text()).not.toContain('PWNED')
    })

    test('confirms a paste of several lines, whatever mode the output sets (threat T23)', async () => {
      await using workbench = await fixture.openPage()
      const dialog = workbench.page.getByRole('dialog')
      // The program does not handle bracketed paste; its output alone turned it on.
      await workbench.first.run(String.raw`printf '\e[?2004h'; echo "for"" cat"; cat > pasted`)
      await workbench.first.waitFor('\nfor cat')
      await workbench.first.paste('o\u{3}ne\ntwo\nthree\n')
      await dialog.getByRole('heading', { name: 'Paste 3 lines?' }).waitFor()
      await dialog.getByText('1 control character will be removed').waitFor()
      await dialog.getByText('o<^C>ne').waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await workbench.page.keyboard.press('Control+c')
      await workbench.first.waitFor(/\^C\n+> ?$/)
      await workbench.first.run(String.raw`printf '\e[?2004l'; echo "for"" tee"; cat > pasted`)
      await workbench.first.waitFor('\nfor tee')
      await workbench.first.paste('four\nfive\n')
      await dialog.getByRole('button', { name: 'Paste', exact: true }).click()
      await workbench.first.waitFor('five')
      await workbench.page.keyboard.press('Control+d')
      expect(await workbench.first.read('cat pasted')).toBe('four\nfive')
      // A user can choose to trust the mode, which the shell turns on.
      await workbench.command('Settings')
      await workbench.page
        .getByLabel('Confirm before pasting several lines')
        .selectOption('Unless the program reports that it handles pastes')
      await workbench.page.keyboard.press('Escape')
      await workbench.first.paste('echo a1\necho b2')
      await workbench.first.waitFor(/> echo a1\n(?:> )?echo b2$/)
      expect(await dialog.isVisible()).toBe(false)
    })

    /** Position of a text on the screen, in CSS pixels. */
    async function placeOf(
      workbench: WorkbenchPage,
      text: string,
    ): Promise<{ readonly x: number; readonly y: number }> {
      const box = await workbench.page.locator('.xterm-screen:visible').boundingBox()
      const { drawn } = await workbench.first.until(() => true)
      if (box === null) throw new Error('There is no screen')
      const lines = (await workbench.first.text()).split('\n').slice(-drawn[1])
      const row = lines.findLastIndex((line) => line.includes(text))
      const column = (lines[row] ?? '').indexOf(text)
      return {
        x: box.x + ((column + 2.5) * box.width) / drawn[0],
        y: box.y + ((row + 0.5) * box.height) / drawn[1],
      }
    }

    test('has a key row for touch that keeps the focus and respects cursor key mode', async () => {
      const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
      await using workbench = await fixture.openPage(phone)
      const key = (name: string) =>
        workbench.page.getByRole('toolbar', { name: 'Terminal keys' }).getByRole('button', { name })
      await workbench.first.run('echo "for"" cat"; cat -v')
      await workbench.first.waitFor('\nfor cat')
      await key('Up').tap()
      await workbench.first.waitFor('\n^[[A')
      await workbench.first.element.locator('textarea').evaluate((element) => element.blur())
      await workbench.first.element.tap()
      await key('Ctrl').tap()
      await workbench.page.keyboard.type('c')
      await workbench.first.waitFor(/\^C\n> ?$/)
      await workbench.first.run(String.raw`printf '\e[?1h'; echo "in"" vim"; cat -v`)
      await workbench.first.waitFor('\nin vim')
      await key('Left').tap()
      await workbench.first.waitFor('\n^[OD')
      await key('Ctrl').tap()
      await workbench.page.keyboard.type('c')
      // Input typed before the program ends is discarded.
      await workbench.first.waitFor(/\^C\n> ?$/)
      await workbench.first.run('echo there > tapped.txt; clear; ls tap*')
      await workbench.first.waitFor(/\ntapped\.txt\n|^tapped\.txt\n/)
      const path = await placeOf(workbench, 'tapped.txt')
      await workbench.page.touchscreen.tap(path.x, path.y)
      await workbench.page.locator('.cm-content', { hasText: 'there' }).waitFor()
    })

    test('scrolls by touch, in scrollback and in a full-screen program', async () => {
      const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
      await using workbench = await fixture.openPage(phone)
      const devtools = await workbench.context.newCDPSession(workbench.page)
      const shown = () => workbench.page.locator('.xterm-rows').innerText()
      const swipe = async (from: number, to: number): Promise<void> => {
        const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ys: readonly number[]) =>
          devtools.send('Input.dispatchTouchEvent', { type, touchPoints: ys.map((y) => ({ x: 150, y })) })
        await touch('touchStart', [from])
        for (let step = 1; step <= 10; step += 1) await touch('touchMove', [from + ((to - from) * step) / 10])
        await touch('touchEnd', [])
      }
      const until = (text: string) => eventually(async () => (await shown()).includes(text), { what: text })
      await workbench.first.run('clear; for i in $(seq 300); do echo "row-$i."; done')
      await until('row-300.')
      expect(await shown()).not.toContain('row-250.')
      await eventually(
        async () => {
          await swipe(200, 600)
          return (await shown()).includes('row-200.')
        },
        { what: 'what is above' },
      )
      await workbench.first.run('seq -f "row-%g." 300 > rows; less rows')
      await until('row-1.')
      await eventually(
        async () => {
          await swipe(600, 200)
          return (await shown()).includes('row-90.')
        },
        { what: 'what is below' },
      )
      expect(await workbench.page.evaluate(() => [scrollY, visualViewport?.pageTop])).toEqual([0, 0])
    })

    test('copies the selection by shortcut and on select', async () => {
      await using workbench = await fixture.openPage()
      await workbench.first.run('clear; echo first-word second_word')
      await workbench.first.waitFor(/word\n> ?$/)
      const first = await placeOf(workbench, 'first-word')
      await workbench.page.mouse.dblclick(first.x, first.y)
      await workbench.page.keyboard.press('Control+Shift+C')
      await eventually(async () => (await workbench.clipboard()) === 'first-word', {
        what: 'a copy',
      })
      await workbench.command('Settings')
      await workbench.page.getByRole('checkbox', { name: /Copy on select/ }).check()
      await workbench.button('Done').click()
      const second = await placeOf(workbench, 'second_word')
      await workbench.page.mouse.dblclick(second.x, second.y)
      await eventually(async () => (await workbench.clipboard()) === 'second_word', {
        what: 'a copy',
      })
      // The focus returned to the terminal.
      await workbench.page.keyboard.type('echo back')
      await workbench.first.waitFor('> echo back')
    })

    test('opens URLs and files and shows their targets (threat T23)', async () => {
      await using workbench = await fixture.openPage()
      const { page } = workbench
      await workbench.context.route('http://*.invalid/**', (route) => route.fulfill({ body: 'there' }))
      const line = page.locator('.sandwire-link-line')
      /** Hovers a text, checks the shown target, and Ctrl+clicks it. */
      const follow = async (text: string, words: string): Promise<void> => {
        const { x, y } = await placeOf(workbench, text)
        await page.mouse.move(x, y + 60)
        await page.mouse.move(x, y)
        await line.getByText(words, { exact: true }).waitFor()
        await page.mouse.click(x, y)
        await page.keyboard.down('Control')
        await page.mouse.click(x, y)
        await page.keyboard.up('Control')
      }
      const opened: string[] = []
      workbench.context.on('page', (other) => opened.push(other.url()))
      await workbench.first.run('mkdir -p src; printf "one\\ntwo\\n" > src/sample.txt; clear')
      await workbench.first.run(
        String.raw`printf '%s and %s\n' http://example.invalid/page src/sample.txt:2; printf '\e]8;;http://evil.invalid/\e\\http://paypal.invalid\e]8;;\e\\\n'`,
      )
      await workbench.first.waitFor('\nhttp://paypal.invalid')
      await follow('http://example.invalid/page and', 'Ctrl+click opens http://example.invalid/page')
      await eventually(() => opened.length > 0, { what: 'a page' })

      await follow('http://paypal.invalid', 'Ctrl+click opens http://evil.invalid/')
      const question = page.getByRole('dialog', { name: 'Open this link?' })
      await question.getByText('http://paypal.invalid', { exact: true }).waitFor()
      await question.getByText('http://evil.invalid/', { exact: true }).waitFor()
      await question.getByRole('button', { name: 'Cancel' }).click()
      await follow('http://paypal.invalid', 'Ctrl+click opens http://evil.invalid/')
      await question.getByRole('button', { name: 'Open' }).click()
      await eventually(() => opened.length > 1, { what: 'another page' })
      expect(opened).toEqual(['http://example.invalid/page', 'http://evil.invalid/'])

      await page.bringToFront()
      await follow('src/sample.txt:2', 'Ctrl+click opens src/sample.txt:2')
      await page.getByRole('tab', { name: 'sample.txt' }).waitFor()
      await page.locator('.cm-content', { hasText: 'two' }).waitFor()
    })
  },
)
