import { unescapeBytes } from './control-parser.ts'

/** Lines of history that a client of a pane gets at first. */
const HISTORY_LINES = 2_000

const FIELDS = [
  'pane_width',
  'pane_height',
  'history_size',
  'alternate_on',
  'cursor_x',
  'cursor_y',
  'cursor_flag',
  'insert_flag',
  'keypad_cursor_flag',
  'keypad_flag',
  'wrap_flag',
  'mouse_standard_flag',
  'mouse_button_flag',
  'mouse_all_flag',
  'mouse_sgr_flag',
  'bracket_paste_flag',
  'scroll_region_upper',
  'scroll_region_lower',
  'origin_flag',
  'alternate_saved_x',
  'alternate_saved_y',
] as const
type Field = (typeof FIELDS)[number]

/** Commands whose replies `renderSnapshot` takes. They run at one moment, so they describe one screen. */
export function snapshotCommands(pane: string): readonly string[] {
  const format = FIELDS.map((name) => `#{${name}}`).join(',')
  return [
    `display-message -p -t ${pane} '${format}'`,
    `capture-pane -p -e -q -J -N -t ${pane} -S -${HISTORY_LINES}`,
    // The same in parts, for when the alternate screen is shown: history, the screen below, the alternate screen.
    `capture-pane -p -e -q -J -N -t ${pane} -S -${HISTORY_LINES} -E -1`,
    `capture-pane -p -e -q -J -N -a -t ${pane}`,
    `capture-pane -p -e -q -J -N -t ${pane}`,
    // Bytes of an incomplete escape sequence.
    `capture-pane -p -P -C -t ${pane}`,
  ]
}

/** `capture-pane` writes line drawing as SO … SI, which select character sets G1 and G0. */
const LINE_DRAWING = '\u001B)0'
const NO_LINE_DRAWING = '\u000F\u001B)B'

export interface PaneSnapshot {
  readonly cols: number
  readonly rows: number
  /** Draws the screen on a terminal of that size that shows nothing. */
  readonly bytes: Uint8Array
}

/** Modes that are off in a new terminal, with the field that says whether they are on. */
const MODES: readonly (readonly [Field, string])[] = [
  ['keypad_cursor_flag', '?1'],
  ['insert_flag', '4'],
  ['mouse_standard_flag', '?1000'],
  ['mouse_button_flag', '?1002'],
  ['mouse_all_flag', '?1003'],
  ['mouse_sgr_flag', '?1006'],
  ['bracket_paste_flag', '?2004'],
]

/** Undefined when the replies are malformed. */
export function renderSnapshot(replies: readonly (readonly Uint8Array[])[]): PaneSnapshot | undefined {
  const [stateLines = [], whole = [], history = [], saved = [], alternate = [], pending = []] = replies
  const values = Buffer.from(stateLines[0] ?? [])
    .toString()
    .split(',')
  if (values.length !== FIELDS.length) return undefined
  const field = (name: Field): number => Number(values[FIELDS.indexOf(name)] ?? 0)
  const [cols, rows] = [field('pane_width'), field('pane_height')]
  const isAlternate = field('alternate_on') === 1
  const parts: (Uint8Array | string)[] = [LINE_DRAWING]
  if (isAlternate) {
    // Without a history, tmux takes the first line of the screen for one.
    if (field('history_size') > 0) parts.push(...linesOf(history), '\u001B[m\r\n')
    parts.push(...linesOf(saved), '\u001B[m', moveTo(field('alternate_saved_x'), field('alternate_saved_y')))
    parts.push('\u001B[?1049h\u001B[H')
  }
  parts.push(...linesOf(isAlternate ? alternate : whole), NO_LINE_DRAWING, '\u001B[m')
  parts.push(...modesOf(field))
  parts.push(...pending.map((line) => unescapeBytes(line)))
  return { cols, rows, bytes: Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array))) }
}

/** Commands for modes, margins and cursor. */
function modesOf(field: (name: Field) => number): readonly string[] {
  const modes: string[] = []
  const [upper, lower] = [field('scroll_region_upper'), field('scroll_region_lower')]
  if (lower > 0 && (upper > 0 || lower < field('pane_height') - 1))
    modes.push(`\u001B[${upper + 1};${lower + 1}r`)
  for (const [name, mode] of MODES) if (field(name) === 1) modes.push(`\u001B[${mode}h`)
  if (field('wrap_flag') === 0) modes.push('\u001B[?7l')
  if (field('keypad_flag') === 1) modes.push('\u001B=')
  modes.push(moveTo(field('cursor_x'), field('cursor_y')))
  if (field('origin_flag') === 1) modes.push('\u001B[?6h')
  if (field('cursor_flag') === 0) modes.push('\u001B[?25l')
  return modes
}

function moveTo(column: number, row: number): string {
  return `\u001B[${row + 1};${column + 1}H`
}

/** Sets the background (tmux writes one command for each color), or resets everything; after ESC. */
const BACKGROUND = /^\[(?:0?|0;[\d;]*|4\d(?:[;:][\d;:]*)?|10[0-7])m/

/** A terminal fills the line that it scrolls in with the background color, so that is off between lines. */
function linesOf(lines: readonly Uint8Array[]): (Uint8Array | string)[] {
  let background = ''
  return lines.flatMap((line, index) => {
    const before = background
    const commands = Buffer.from(line).toString('latin1').split('\u001B').slice(1)
    const last = commands.flatMap((command) => BACKGROUND.exec(command)?.[0] ?? []).at(-1)
    if (last !== undefined) background = /^\[(?:4[0-8]|10)/.test(last) ? `\u001B${last}` : ''
    const lineEnd = before === '' ? ['\r\n'] : ['\u001B[49m\r\n', before]
    return index === 0 ? [line] : [...lineEnd, line]
  })
}
