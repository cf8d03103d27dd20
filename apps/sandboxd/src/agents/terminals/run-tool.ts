import {
  bytesOfKey,
  bytesOfText,
  DEFAULT_WAIT_SECONDS,
  isTerminalTool,
  type Json,
  type McpResult,
  TERMINAL_ARGUMENTS,
  type TerminalArguments,
  type TerminalTool,
} from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import type { RowRange, ScreenText } from '../../screen/screen-renderer.ts'
import type { AgentTerminal, TypingRefusal, TypingResult } from './agent-terminal.ts'
import type { AgentTerminals } from './agent-terminals.ts'

const DEFAULT_SIZE = { cols: 100, rows: 30 }
/** Text of one result; models pay for every character. */
const MAX_RESULT_CHARS = 32 * 1024
/** Output is quiet when there was none for this long. */
const QUIET_MS = 1_000
/** After input, for the echo and the program's answer. */
const ECHO_QUIET_MS = 200
const ECHO_MS = 3_000
/** Between two looks at what no event announces, such as whether the terminal echoes. */
const LOOK_MS = 250
const SCREEN: RowRange = { from: 1, count: undefined }

/** Runs a tool; never rejects. `signal` is aborted when nobody waits for the result. */
export async function runTool(
  terminals: AgentTerminals,
  call: { readonly tool: string; readonly args: Json },
  signal: AbortSignal,
): Promise<McpResult> {
  try {
    const { tool, args } = call
    if (!isTerminalTool(tool)) throw new SandwireError('bad_request', 'No such tool')
    const text = await TOOLS[tool](terminals, args, signal)
    return { text: bound(text), isError: false }
  } catch (error) {
    return { text: bound(SandwireError.from(error).message), isError: true }
  }
}

function bound(text: string): string {
  if (text.length <= MAX_RESULT_CHARS) return text
  return `${text.slice(0, MAX_RESULT_CHARS).toWellFormed()}\n[cut: more than ${MAX_RESULT_CHARS} characters]`
}

type Tool = (terminals: AgentTerminals, args: Json, signal: AbortSignal) => Promise<string>

/** Throws `bad_request` for arguments that the tool does not take. */
function argumentsOf<T extends TerminalTool>(tool: T, args: Json): TerminalArguments<T> {
  const decoded = TERMINAL_ARGUMENTS[tool].decode(args)
  if (decoded === undefined)
    throw new SandwireError('bad_request', `The arguments do not match the schema of ${tool}`)
  return decoded as TerminalArguments<T>
}

const TOOLS: Readonly<Record<TerminalTool, Tool>> = {
  terminal_open: async (terminals, raw, signal) => {
    const { command, args = [], cwd, cols, rows } = argumentsOf('terminal_open', raw)
    const id = await terminals.open({
      command,
      args,
      cwd,
      cols: cols ?? DEFAULT_SIZE.cols,
      rows: rows ?? DEFAULT_SIZE.rows,
    })
    const terminal = terminals.find(id)
    await untilQuiet(terminal, { quietMs: ECHO_QUIET_MS, timeoutMs: ECHO_MS }, signal)
    return showScreen(id, terminal)
  },

  terminal_list: async (terminals, raw) => {
    argumentsOf('terminal_list', raw)
    const lines = [...terminals.all()].map(([id, terminal]) => describe(id, terminal))
    return lines.length === 0 ? 'No terminal is open' : lines.join('\n')
  },

  terminal_read: async (terminals, raw) => {
    const { terminal: id, fromRow, rows } = argumentsOf('terminal_read', raw)
    return showScreen(id, terminals.find(id), { from: fromRow ?? 1, count: rows })
  },

  terminal_type: async (terminals, raw, signal) => {
    const { terminal: id, text = '', keys = [] } = argumentsOf('terminal_type', raw)
    const terminal = terminals.find(id)
    const isApplicationCursor = (await terminal.read({ from: 1, count: 1 }))?.isApplicationCursor ?? false
    const input = bytesOfText(text) + keys.map((key) => bytesOfKey(key, isApplicationCursor)).join('')
    const bytes = new TextEncoder().encode(input)
    if (bytes.byteLength === 0) throw new SandwireError('bad_request', 'Nothing to type: give text or keys')
    const result = await terminal.type(bytes, signal)
    checkTyped(result, bytes.byteLength)
    await untilQuiet(terminal, { quietMs: ECHO_QUIET_MS, timeoutMs: ECHO_MS }, signal)
    return showScreen(id, terminal)
  },

  terminal_wait: async (terminals, raw, signal) => {
    const { terminal: id, until, text, seconds } = argumentsOf('terminal_wait', raw)
    const terminal = terminals.find(id)
    if (until === 'text' && (text ?? '') === '')
      throw new SandwireError('bad_request', 'Give the text to wait for')
    const timeoutMs = (seconds ?? DEFAULT_WAIT_SECONDS) * 1000
    const isMet = await WAITS[until](terminal, { timeoutMs, text: text ?? '' }, signal)
    const outcome = isMet ? `Waited until ${until}.` : `Not ${until} after ${timeoutMs / 1000} s.`
    return `${outcome}\n${await showScreen(id, terminal)}`
  },

  terminal_ask: async (terminals, raw) => {
    const { terminal: id } = argumentsOf('terminal_ask', raw)
    const terminal = terminals.find(id)
    terminal.ask()
    return `Asked.\n${describe(id, terminal)}`
  },

  terminal_close: async (terminals, raw) => {
    const { terminal: id } = argumentsOf('terminal_close', raw)
    const isLeft = typeof terminals.find(id).driver === 'object'
    await terminals.close(id)
    return isLeft ? `You left terminal ${id}, which a person drives.` : `Terminal ${id} is closed.`
  },
}

interface WaitOptions {
  readonly timeoutMs: number
  readonly text: string
}

type Wait = (terminal: AgentTerminal, options: WaitOptions, signal: AbortSignal) => Promise<boolean>

const WAITS: Readonly<Record<TerminalArguments<'terminal_wait'>['until'], Wait>> = {
  quiet: (terminal, { timeoutMs }, signal) => untilQuiet(terminal, { quietMs: QUIET_MS, timeoutMs }, signal),
  exit: (terminal, { timeoutMs }, signal) =>
    untilTrue(terminal, timeoutMs, signal, async () => terminal.hasEnded),
  control: (terminal, { timeoutMs }, signal) =>
    untilTrue(terminal, timeoutMs, signal, async () => terminal.canType || terminal.hasEnded),
  text: (terminal, { timeoutMs, text }, signal) =>
    untilTrue(terminal, timeoutMs, signal, async () => {
      const screen = await terminal.read(SCREEN)
      return screen?.lines.join('\n').includes(text) === true
    }),
}

/** False when the time is over, or nobody waits any more. */
async function untilTrue(
  terminal: AgentTerminal,
  timeoutMs: number,
  signal: AbortSignal,
  isTrue: () => Promise<boolean>,
): Promise<boolean> {
  const endMs = performance.now() + timeoutMs
  while (!(await isTrue())) {
    const leftMs = endMs - performance.now()
    if (leftMs <= 0 || signal.aborted || terminal.hasEnded) return false
    await terminal.changed(Math.min(leftMs, LOOK_MS))
  }
  return true
}

function untilQuiet(
  terminal: AgentTerminal,
  { quietMs, timeoutMs }: { readonly quietMs: number; readonly timeoutMs: number },
  signal: AbortSignal,
): Promise<boolean> {
  return untilTrue(terminal, timeoutMs, signal, async () => terminal.quietMs >= quietMs || terminal.hasEnded)
}

/** Throws the reason when not all of the input was accepted, or the problem that typing it caused. */
function checkTyped({ acceptedBytes, refusal, isUnread, warning }: TypingResult, bytes: number): void {
  const problem =
    refusal === undefined
      ? isUnread
        ? 'The program does not read its input.'
        : warning
      : explainRefusal(refusal)
  if (problem === undefined) return
  throw new SandwireError('role_refused', `${acceptedBytes} of ${bytes} bytes were typed. ${problem}`)
}

function explainRefusal(refusal: TypingRefusal): string {
  switch (refusal.kind) {
    case 'ended':
      return 'The program has ended.'
    case 'private':
      return PRIVATE
    case 'secret':
      return SECRET
    case 'driven':
      return `${nameOf(refusal.by)} drives this terminal, so your typing is refused. Wait with terminal_wait until "control", or ask for control with terminal_ask.`
  }
}

const PRIVATE =
  'A person types something private, which you must not see. Wait with terminal_wait until "control".'
const SECRET =
  'The program reads a password, which only a person may type. Tell the person, and wait with terminal_wait until "control".'

/** Names are chosen by people, so they are quoted. */
function nameOf(name: string): string {
  return name === '' ? 'A person' : JSON.stringify(name)
}

/** One line about a terminal. */
function describe(id: string, terminal: AgentTerminal): string {
  const { exit, problem, driver, others } = terminal
  const ended = exit === undefined ? undefined : `ended with ${exit.signal ?? `code ${exit.code}`}`
  const driving =
    driver === 'agent'
      ? 'you drive'
      : driver === 'none'
        ? 'nobody drives'
        : `${nameOf(driver.name)} drives, so you cannot type`
  const watching = others.length === 0 ? '' : `; also here: ${others.map(nameOf).join(', ')}`
  const state = ended ?? (terminal.hasEnded ? 'ended' : `running, ${driving}${watching}`)
  const session = `session ${terminal.session}`
  return `Terminal ${id} (${JSON.stringify(terminal.command)}, ${session}): ${problem ?? state}`
}

async function showScreen(id: string, terminal: AgentTerminal, range = SCREEN): Promise<string> {
  const head = describe(id, terminal)
  if (terminal.isInputPrivate) return `${head}\n${PRIVATE}`
  const screen = await terminal.read(range)
  // It may have become private while the screen was rendered.
  if (terminal.isInputPrivate) return `${head}\n${PRIVATE}`
  if (screen === undefined) return `${head}\nThe screen could not be rendered.`
  const notes = [
    terminal.takeOutputGap() ? 'Output was left out: it was private, or there was too much.' : '',
    terminal.isReadingSecret ? SECRET : '',
  ].filter((note) => note !== '')
  return [head, ...notes, ...renderRows(screen)].join('\n')
}

function renderRows({ cols, rows, scrollback, cursor, from, lines }: ScreenText): readonly string[] {
  const last = lines.findLastIndex((line) => line !== '')
  const shown = lines.slice(0, last + 1)
  return [
    `${cols} columns, ${rows} rows, ${scrollback} rows of scrollback; cursor at row ${cursor.row}, column ${cursor.column}.`,
    shown.length === 0 ? `From row ${from} on, the screen is empty.` : `From row ${from}:`,
    ...shown,
  ]
}
