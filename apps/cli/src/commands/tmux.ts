import { UsageError } from '../errors/errors.ts'
import { printable } from '../text/printable.ts'
import { formatJson, formatTable } from '../text/table.ts'
import type { Command, CommandContext } from './command.ts'
import { SANDBOX_NAME } from './positionals.ts'
import { decodeMadePane, decodeTmux } from './responses.ts'

const LIST_HINT = 'sbx-stdio tmux SANDBOX list'
const PANE = /^%\d{1,9}$/
const WINDOW = /^@\d{1,9}$/
const DIRECTIONS = ['left', 'right', 'up', 'down']

/** Attaches to the newest session of tmux, or starts one. */
const TMUX_COMMAND =
  'tmux -N has-session 2>/dev/null && exec tmux attach-session; exec tmux new-session -s main'

type Words = readonly (string | undefined)[]
type Body = Readonly<Record<string, string | number>>

function paneOf(word: string | undefined): string {
  if (word !== undefined && PANE.test(word)) return word
  throw new UsageError('Give a pane such as %3', LIST_HINT)
}

/** The field that a pane or window belongs in, and the action for it. */
function targetOf(word: string | undefined, verb: string): Body {
  if (word !== undefined && PANE.test(word)) return { type: `${verb}_pane`, pane: word }
  if (word !== undefined && WINDOW.test(word)) return { type: `${verb}_window`, window: word }
  throw new UsageError('Give a pane such as %3, or a window such as @1', LIST_HINT)
}

function nameOf(word: string | undefined): string {
  if (word === undefined || word === '') throw new UsageError('No name is given')
  return word
}

function sizeOf(word: string | undefined): Body {
  const [, cols, rows] = /^(\d{1,4})x(\d{1,4})$/.exec(word ?? '') ?? []
  if (cols === undefined || rows === undefined) throw new UsageError('Give a size such as 120x40')
  return { cols: Number(cols), rows: Number(rows) }
}

function splitOf(pane: string | undefined, direction = 'right'): Body {
  if (!DIRECTIONS.includes(direction)) throw new UsageError('Split to the left, right, up or down')
  return { type: 'split', pane: paneOf(pane), direction }
}

/** Actions by their word, with the number of words that may follow. */
const ACTIONS: Readonly<Record<string, { readonly words: number; readonly body: (words: Words) => Body }>> = {
  new: { words: 1, body: ([name]) => ({ type: 'new_window', ...(name === undefined ? {} : { name }) }) },
  split: { words: 2, body: ([pane, direction]) => splitOf(pane, direction) },
  select: { words: 1, body: ([target]) => targetOf(target, 'select') },
  resize: { words: 2, body: ([target, size]) => ({ ...targetOf(target, 'resize'), ...sizeOf(size) }) },
  zoom: { words: 1, body: ([pane]) => ({ type: 'zoom_pane', pane: paneOf(pane) }) },
  swap: {
    words: 2,
    body: ([pane, other]) => ({ type: 'swap_panes', pane: paneOf(pane), other: paneOf(other) }),
  },
  rename: { words: 2, body: ([target, name]) => ({ ...targetOf(target, 'rename'), name: nameOf(name) }) },
  kill: {
    words: 1,
    body: ([target]) => (target === undefined ? { type: 'kill_server' } : targetOf(target, 'kill')),
  },
}

async function attach(arguments_: readonly string[], { io, server }: CommandContext): Promise<number> {
  if (io.attach === undefined) throw new UsageError('This needs a terminal', LIST_HINT)
  return io.attach([server, ...arguments_])
}

async function list(sandbox: string, { api, io, isJson, program, urlOption }: CommandContext): Promise<void> {
  const response = await api.request('GET', `/api/sandboxes/${sandbox}/tmux`)
  if (isJson) {
    io.print(formatJson(response))
    return
  }
  const { state, windows = [] } = decodeTmux(response)
  if (state === 'missing') {
    io.info(`tmux is not installed in ${sandbox}`)
    io.hint('install it there, or on the machine that runs the sandboxes: apt-get install tmux')
  }
  if (state === 'stopped') {
    io.info(`tmux does not run in ${sandbox}`)
    io.hint(`start it: ${program} tmux ${sandbox}${urlOption}`)
  }
  if (state !== 'running') return
  const rows = windows.flatMap((window) =>
    window.panes.map((pane) => [
      `${window.index}${window.isActive ? '*' : ''}`,
      window.id,
      printable(window.name),
      `${pane.id}${pane.isActive ? '*' : ''}`,
      printable(pane.command),
      printable(pane.title),
    ]),
  )
  io.print(formatTable(['INDEX', 'WINDOW', 'NAME', 'PANE', 'COMMAND', 'TITLE'], rows, io.columns))
}

async function act(sandbox: string, body: Body, { api, io, isJson }: CommandContext): Promise<void> {
  const response = await api.request('POST', `/api/sandboxes/${sandbox}/tmux`, body)
  const made = decodeMadePane(response)
  if (isJson) io.print(formatJson(response))
  else if (made !== undefined) io.print(`${made}\n`)
}

/** Uses tmux in a sandbox. */
export const tmux: Command = {
  help: `Usage: sbx-stdio tmux SANDBOX [ACTION ...] [--json]

Without an action, shows tmux in this terminal and starts it if needed. The workbench shows the same windows.

  list                       list windows and panes; * marks the active ones
  show PANE                  show one pane in this terminal
  new [NAME]                 make a window
  split PANE [DIRECTION]     make a pane left, right (default), up or down of another
  select PANE|WINDOW         make it the active one
  resize PANE|WINDOW SIZE    for example 120x40
  zoom PANE                  let it fill its window, or not any more
  swap PANE PANE             exchange two panes
  rename PANE|WINDOW NAME
  kill [PANE|WINDOW]         end it with its programs; without one, all of tmux

  sbx-stdio tmux dev split %0 down
`,
  options: {},
  parse: ({ positionals }) => {
    const [sandbox, action, ...words] = positionals
    if (sandbox === undefined) throw new UsageError('No sandbox is given', 'sbx-stdio list')
    if (!SANDBOX_NAME.test(sandbox))
      throw new UsageError('Invalid sandbox name: use lower-case letters, digits and hyphens (max 63)')
    if (action === undefined)
      return {
        sandbox,
        run: (context) => attach(['--sandbox', sandbox, '--', 'sh', '-c', TMUX_COMMAND], context),
      }
    if (action === 'list' && words.length === 0) return { sandbox, run: (context) => list(sandbox, context) }
    if (action === 'show' && words.length === 1) {
      const pane = paneOf(words[0])
      return {
        sandbox,
        run: (context) => attach(['--sandbox', sandbox, '--no-create', '--pane', pane], context),
      }
    }
    const known = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
    if (known === undefined || words.length > known.words)
      throw new UsageError(`Cannot do "${printable(action)}" with these arguments`)
    const body = known.body(words)
    return { sandbox, run: (context) => act(sandbox, body, context) }
  },
}
