import { Terminal } from '@xterm/headless'
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describeTmux, firstPane, open, setUp } from './tmux.fixture.ts'

/** What a terminal shows: text, colors and cursor. */
async function render(bytes: Uint8Array): Promise<unknown> {
  const terminal = new Terminal({ cols: 80, rows: 24, scrollback: 5_000, allowProposedApi: true })
  await new Promise<void>((resolve) => terminal.write(bytes, resolve))
  const { active, normal } = terminal.buffer
  const { type, cursorX, cursorY } = active
  return { type, cursorX, cursorY, shown: rowsOf(active), normal: rowsOf(normal), modes: terminal.modes }
}

/** Each row's text, with the columns where colors change. */
function rowsOf(buffer: Terminal['buffer']['active']): readonly string[] {
  return Array.from({ length: buffer.length }, (_, index) => {
    const line = buffer.getLine(index)
    const cells = Array.from({ length: 80 }, (__, column) => line?.getCell(column))
    const colors = cells.map((cell) =>
      [cell?.getBgColor(), cell?.getChars().trim() === '' ? '' : [cell?.getFgColor(), cell?.isBold()]].join(
        ':',
      ),
    )
    const changes = colors.flatMap((color, column) => (color === colors[column - 1] ? [] : [column, color]))
    return `${line?.translateToString(true)} ${changes.join(' ')}`
  })
}

const FILL = String.raw`\n`.repeat(30)
const SCENES: readonly (readonly [name: string, printed: string])[] = [
  ['line drawing', String.raw`\033(0lqqk\033(B plain \033)0\016x\017 x\n`],
  ['line drawing in the last cell', String.raw`a\033(0q`],
  [
    'background colors that scrolled away',
    String.raw`\033[44mblue\n\033[0mplain\n\033[48;5;200mpink\n\033[7mboth\033[m${FILL}`,
  ],
  [
    'colors beside each other',
    String.raw`\033[31;42mab\033[1;38;2;1;2;3;48;2;4;5;6mcd\n\033[49mno\033[m${FILL}`,
  ],
  [
    'colors over several lines',
    String.raw`\033[1;31mred\nred\033[44mX\033[0;32mgreen\033[1m\nbold\n\033[45m\n\n\033[mx${FILL}`,
  ],
  ['wrapped lines', `${'0123456789'.repeat(20)}${FILL}`],
  ['wide and combined characters', String.raw`漢字 e\314\201 😀\n`],
  ['margins', String.raw`\033[5;10r\033[7;3Hin`],
  ['an alternate screen', String.raw`below\n\033[?1049h\033[2J\033[3;4Halt\033[44m \033[m`],
  [
    'an alternate screen after much output',
    String.raw`${Array.from({ length: 90 }, (_, line) => line).join(String.raw`\n`)}\033[?1049h\033[Halt`,
  ],
  ['modes', String.raw`\033[?1h\033=\033[?1003h\033[?1006h\033[?25l`],
]

describeTmux('the first screen of a pane', () => {
  test.each(SCENES)('shows %s as the pane does', async (_, printed) => {
    const { service, folder } = setUp()
    const id = await firstPane(service)
    const first = open(service, id)
    await first.shows('$ ')
    writeFileSync(path.join(folder, 'scene'), printed)
    first.type(`clear; printf "$(cat scene)"; printf '\\033]2;end\\007'; sleep 60\r`)
    await first.shows('\u001B]2;end\u0007')
    const second = open(service, id)
    await second.shows('')
    await service.act({ type: 'select_pane', pane: id })
    expect(await render(second.bytes())).toEqual(await render(first.bytes()))
  })
})
