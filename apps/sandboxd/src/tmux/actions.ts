import { SandwireError, schema } from '@sandwire/protocol'
import { quoteFormat } from './control-client.ts'

/** tmux allows up to 10,000, but no screen has that many. */
const MAX_SIDE = 1_000

const pane = schema.text(12, /^%\d+$/)
const window = schema.text(12, /^@\d+$/)
/** No control characters: a command is one line. */
const name = schema.text(100, /^[^\p{C}]+$/u)
const cwd = schema.text(4096, /^\/[^\p{C}]*$/u)
const side = schema.integer(1, MAX_SIDE)
const { literal, optional, record } = schema

const actionSchema = schema.tagged({
  new_window: record({ type: literal('new_window'), name: optional(name), cwd: optional(cwd) }),
  split: record({
    type: literal('split'),
    pane,
    direction: schema.oneOf(['left', 'right', 'up', 'down']),
    cwd: optional(cwd),
  }),
  select_window: record({ type: literal('select_window'), window }),
  select_pane: record({ type: literal('select_pane'), pane }),
  resize_window: record({ type: literal('resize_window'), window, cols: side, rows: side }),
  resize_pane: record({ type: literal('resize_pane'), pane, cols: optional(side), rows: optional(side) }),
  zoom_pane: record({ type: literal('zoom_pane'), pane }),
  swap_panes: record({ type: literal('swap_panes'), pane, other: pane }),
  rename_window: record({ type: literal('rename_window'), window, name }),
  rename_pane: record({ type: literal('rename_pane'), pane, name }),
  kill_window: record({ type: literal('kill_window'), window }),
  kill_pane: record({ type: literal('kill_pane'), pane }),
  kill_server: record({ type: literal('kill_server') }),
})

/** The body of `POST …/tmux`. */
export type TmuxAction = NonNullable<ReturnType<typeof actionSchema.decode>>

/** Decodes an action; throws `bad_request`. */
export function parseAction(body: unknown): TmuxAction {
  const action = actionSchema.decode(body)
  if (action === undefined)
    throw new SandwireError('bad_request', 'Cannot read the body: expected an action with its fields')
  return action
}

const SPLITS = { left: '-h -b', right: '-h', up: '-v -b', down: '-v' } as const

/** The command of an action. New windows and panes print the id of their pane. */
export function commandOf(action: Exclude<TmuxAction, { type: 'resize_window' }>): string {
  switch (action.type) {
    case 'new_window':
      return `new-window -P -F '#{pane_id}'${textFlag('-n', action.name)}${textFlag('-c', action.cwd)}`
    case 'split':
      return `split-window ${SPLITS[action.direction]} -P -F '#{pane_id}' -t ${action.pane}${textFlag('-c', action.cwd)}`
    case 'select_window':
      return `select-window -t ${action.window}`
    case 'select_pane':
      // A zoomed window stays zoomed.
      return `select-pane -Z -t ${action.pane}`
    case 'resize_pane':
      return `resize-pane -t ${action.pane}${sideFlag('-x', action.cols)}${sideFlag('-y', action.rows)}`
    case 'zoom_pane':
      return `resize-pane -Z -t ${action.pane}`
    case 'swap_panes':
      return `swap-pane -s ${action.pane} -t ${action.other}`
    case 'rename_window':
      return `rename-window -t ${action.window} -- ${quoteFormat(action.name)}`
    case 'rename_pane':
      return `select-pane -t ${action.pane} -T ${quoteFormat(action.name)}`
    case 'kill_window':
      return `kill-window -t ${action.window}`
    case 'kill_pane':
      return `kill-pane -t ${action.pane}`
    case 'kill_server':
      return 'kill-server'
  }
}

function textFlag(option: string, value: string | undefined): string {
  return value === undefined ? '' : ` ${option} ${quoteFormat(value)}`
}

function sideFlag(option: string, value: number | undefined): string {
  return value === undefined ? '' : ` ${option} ${value}`
}
