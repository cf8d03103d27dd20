import { schema } from '@sandwire/protocol'
import type { Json } from '../json.ts'
import type { McpTool } from './mcp-server.ts'
import { KEY_NAMES } from './terminal-keys.ts'

/** Name of the tool server in the settings of agents; agents make it part of the tools' names. */
export const TERMINAL_SERVER = 'terminals'

/** Terminals that one run has open at a time. */
export const MAX_AGENT_TERMINALS = 8
/** Characters that one call types. */
export const MAX_TYPED_CHARS = 16 * 1024
const MAX_KEYS = 64
/** Rows that one call returns. */
export const MAX_READ_ROWS = 200
/** Below the 60 s after which many clients give a call up. */
export const MAX_TERMINAL_WAIT_SECONDS = 50
export const DEFAULT_WAIT_SECONDS = 10
const MAX_COLS = 500
const MAX_ROWS = 200
const MAX_TEXT_CHARS = 1_000
/** Rows of the scrollback have negative numbers. */
const MAX_ROW = 100_000

export const INSTRUCTIONS = `Terminals that you share with people. Everyone with access to the sandbox sees them live, and sees that an agent types. \
Use them for programs that need a terminal or run for long: servers, REPLs, debuggers, installers. One attachment at a time drives a terminal; when a \
person takes control, your typing is refused until they give it back or leave, so read the reason and do something else or wait. Never type \
passwords or other secrets: ask the person to type them.`

const terminal = schema.text(16)

/** Decoders of the tools' arguments. */
export const TERMINAL_ARGUMENTS = {
  terminal_open: schema.record({
    command: schema.optional(schema.text(4096, /^[^\0]+$/)),
    args: schema.optional(schema.list(schema.text(4096, /^[^\0]*$/), 64)),
    cwd: schema.optional(schema.text(4096, /^[^\0]*$/)),
    cols: schema.optional(schema.integer(20, MAX_COLS)),
    rows: schema.optional(schema.integer(5, MAX_ROWS)),
  }),
  terminal_list: schema.record({}),
  terminal_read: schema.record({
    terminal,
    fromRow: schema.optional(schema.integer(-MAX_ROW, MAX_ROW)),
    rows: schema.optional(schema.integer(1, MAX_READ_ROWS)),
  }),
  terminal_type: schema.record({
    terminal,
    text: schema.optional(schema.text(MAX_TYPED_CHARS)),
    keys: schema.optional(schema.list(schema.text(40), MAX_KEYS)),
  }),
  terminal_wait: schema.record({
    terminal,
    until: schema.oneOf(['quiet', 'text', 'exit', 'control']),
    text: schema.optional(schema.text(MAX_TEXT_CHARS)),
    seconds: schema.optional(schema.integer(1, MAX_TERMINAL_WAIT_SECONDS)),
  }),
  terminal_ask: schema.record({ terminal }),
  terminal_close: schema.record({ terminal }),
} as const

export type TerminalTool = keyof typeof TERMINAL_ARGUMENTS
export type TerminalArguments<T extends TerminalTool> = schema.Decoded<(typeof TERMINAL_ARGUMENTS)[T]>

export function isTerminalTool(name: string): name is TerminalTool {
  return Object.hasOwn(TERMINAL_ARGUMENTS, name)
}

const TERMINAL: Json = { type: 'string', description: 'Id of the terminal, such as t1' }

function tool(
  name: TerminalTool,
  title: string,
  description: string,
  properties: Json,
  { required = [], isReadOnly = false }: { required?: readonly string[]; isReadOnly?: boolean } = {},
): McpTool {
  const inputSchema = { type: 'object', properties, required, additionalProperties: false }
  return { name, title, description, inputSchema, isReadOnly }
}

export const TERMINAL_TOOLS: readonly McpTool[] = [
  tool(
    'terminal_open',
    'Open a terminal',
    `Starts a program in a new terminal, by default the login shell, and returns the terminal's id and screen. At most ${MAX_AGENT_TERMINALS} are open at a time; they end with your run, except for those that a person drives then.`,
    {
      command: { type: 'string', description: 'Program; default: the login shell' },
      args: { type: 'array', items: { type: 'string' } },
      cwd: { type: 'string', description: 'Folder in the workspace; default: the workspace' },
      cols: { type: 'integer', minimum: 20, maximum: MAX_COLS, description: 'Default: 100' },
      rows: { type: 'integer', minimum: 5, maximum: MAX_ROWS, description: 'Default: 30' },
    },
  ),
  tool(
    'terminal_list',
    'List terminals',
    'Lists your open terminals and who drives each.',
    {},
    { isReadOnly: true },
  ),
  tool(
    'terminal_read',
    'Read a terminal',
    'Returns rows of the rendered screen, by default all of it. Row 1 is the top of the screen; rows 0, -1, … are the scrollback, the latest first.',
    {
      terminal: TERMINAL,
      fromRow: { type: 'integer', description: 'First row; default: 1' },
      rows: {
        type: 'integer',
        minimum: 1,
        maximum: MAX_READ_ROWS,
        description: 'Default: to the end of the screen',
      },
    },
    { required: ['terminal'], isReadOnly: true },
  ),
  tool(
    'terminal_type',
    'Type into a terminal',
    'Types text, then presses keys, then returns the screen once output is quiet. A line feed in the text is the Enter key. Refused while a person drives the terminal, and while it asks for a password.',
    {
      terminal: TERMINAL,
      text: { type: 'string', maxLength: MAX_TYPED_CHARS },
      keys: {
        type: 'array',
        items: { type: 'string' },
        maxItems: MAX_KEYS,
        description: `Keys to press after the text: ${KEY_NAMES.join(', ')}`,
      },
    },
    { required: ['terminal'] },
  ),
  tool(
    'terminal_wait',
    'Wait on a terminal',
    'Waits until output is quiet for a second (quiet), the screen shows a text (text), the program has ended (exit), or you may type again (control); then returns the screen.',
    {
      terminal: TERMINAL,
      until: { type: 'string', enum: ['quiet', 'text', 'exit', 'control'] },
      text: { type: 'string', maxLength: MAX_TEXT_CHARS, description: 'For until: text' },
      seconds: {
        type: 'integer',
        minimum: 1,
        maximum: MAX_TERMINAL_WAIT_SECONDS,
        description: `Default: ${DEFAULT_WAIT_SECONDS}`,
      },
    },
    { required: ['terminal', 'until'], isReadOnly: true },
  ),
  tool(
    'terminal_ask',
    'Ask for control',
    'Asks the person who drives the terminal to give you control. Wait for it with terminal_wait.',
    { terminal: TERMINAL },
    { required: ['terminal'], isReadOnly: true },
  ),
  tool(
    'terminal_close',
    'Close a terminal',
    'Ends the program and the terminal. If a person drives it, it stays open for them.',
    { terminal: TERMINAL },
    { required: ['terminal'] },
  ),
]

/** Tools that change nothing, so that no person needs to be asked. */
export const READ_ONLY_TERMINAL_TOOLS: readonly string[] = TERMINAL_TOOLS.filter(
  ({ isReadOnly }) => isReadOnly,
).map(({ name }) => name)
