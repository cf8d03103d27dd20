import { findNeighbor, isDirection, type LayoutCell, parseLayout } from './layout.ts'

/** What `GET …/tmux` returns, and each event of `GET …/tmux/events`. */
export type TmuxView =
  | { readonly state: 'missing' | 'stopped' }
  | { readonly state: 'running'; readonly windows: readonly TmuxWindow[] }

export interface TmuxWindow {
  /** `@1` */
  readonly id: string
  readonly index: number
  readonly name: string
  readonly isActive: boolean
  /** One pane fills the window; the others are hidden. */
  readonly isZoomed: boolean
  /** Where the panes are. */
  readonly layout: LayoutCell
  readonly panes: readonly TmuxPane[]
}

export interface TmuxPane {
  /** `%3` */
  readonly id: string
  readonly title: string
  /** The program in the foreground. */
  readonly command: string
  readonly cwd: string
  readonly isActive: boolean
  /** A tmux user scrolls in it; what is typed goes to tmux and not to the program. */
  readonly isInMode: boolean
}

/** A pane with what only sandboxd uses. */
export interface KnownPane extends TmuxPane {
  readonly window: string
  readonly pid: number
  readonly terminal: string
  readonly cols: number
  readonly rows: number
}

const SEPARATOR = '\t'
/** Fields whose text programs and users choose. */
const FREE_FIELDS = new Set(['window_name', 'pane_current_command', 'pane_current_path', 'pane_title'])
const WINDOW_FIELDS = [
  'window_id',
  'window_index',
  'window_active',
  'window_zoomed_flag',
  'window_visible_layout',
  'window_name',
]
const PANE_FIELDS = [
  'pane_id',
  'window_id',
  'pane_pid',
  'pane_tty',
  'pane_width',
  'pane_height',
  'pane_active',
  'pane_in_mode',
  'pane_current_command',
  'pane_current_path',
  'pane_title',
]

/** A quoted format. Control characters are replaced: folders may have separators and line ends in their names. */
function formatOf(fields: readonly string[]): string {
  const format = fields.map((name) =>
    FREE_FIELDS.has(name) ? String.raw`#{s/[\001-\037\177]/?/:${name}}` : `#{${name}}`,
  )
  return `"${format.join(SEPARATOR)}"`
}

/** Commands whose replies `readState` takes. */
export const STATE_COMMANDS = [
  `list-windows -F ${formatOf(WINDOW_FIELDS)}`,
  `list-panes -s -F ${formatOf(PANE_FIELDS)}`,
]

export interface TmuxState {
  readonly windows: readonly TmuxWindow[]
  readonly panes: ReadonlyMap<string, KnownPane>
}

export function readState(replies: readonly (readonly Uint8Array[])[]): TmuxState {
  const [windowLines = [], paneLines = []] = replies.map((lines) =>
    lines.map((line) => new TextDecoder().decode(line).split(SEPARATOR)),
  )
  const panes = new Map(paneLines.map((fields) => [fields[0] ?? '', readPane(fields)]))
  return { windows: windowLines.flatMap((fields) => readWindow(fields, panes)), panes }
}

function readPane([
  id = '',
  window = '',
  pid = '',
  terminal = '',
  cols = '',
  rows = '',
  active = '',
  mode = '',
  command = '',
  cwd = '',
  ...title
]: readonly string[]): KnownPane {
  return {
    id,
    window,
    pid: Number(pid),
    terminal,
    cols: Number(cols),
    rows: Number(rows),
    isActive: active === '1',
    isInMode: mode === '1',
    command,
    cwd,
    title: title.join(SEPARATOR),
  }
}

function readWindow(
  [id = '', index = '', active = '', zoomed = '', layoutText = '', ...name]: readonly string[],
  panes: ReadonlyMap<string, KnownPane>,
): TmuxWindow[] {
  const layout = parseLayout(layoutText)
  if (layout === undefined) return []
  const own = [...panes.values()].filter(({ window }) => window === id)
  return [
    {
      id,
      index: Number(index),
      name: name.join(SEPARATOR),
      isActive: active === '1',
      isZoomed: zoomed === '1',
      layout,
      panes: own.map(({ id: pane, title, command, cwd, isActive, isInMode }) => ({
        id: pane,
        title,
        command,
        cwd,
        isActive,
        isInMode,
      })),
    },
  ]
}

/** Finds a pane by id, by its position beside `from`, or by its title. */
export function findPane({ windows, panes }: TmuxState, from: string, target: string): string | undefined {
  if (target.startsWith('%')) return panes.has(target) ? target : undefined
  if (isDirection(target)) {
    const window = windows.find(({ id }) => id === panes.get(from)?.window)
    return window && findNeighbor(window.layout, from, target)
  }
  return [...panes.values()].find(({ title }) => title === target)?.id
}
