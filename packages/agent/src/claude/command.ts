import type { AgentStart, ClaudeOptions } from '../api.ts'
import { READ_ONLY_TERMINAL_TOOLS, TERMINAL_SERVER } from '../mcp/terminal-tools.ts'
import type { ToolServer } from '../tool-server.ts'

/**
 * Settings of the program for a run: no traffic but to the model API, no updates, errors at startup as a result line, few retries,
 * text in pieces of at least 50 ms, and `TodoWrite`, which newer versions offer only on request.
 */
const ENV: Readonly<Record<string, string>> = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_AUTOUPDATER: '1',
  CLAUDE_CODE_STARTUP_FAILURE_RESULTS: '1',
  CLAUDE_CODE_MAX_RETRIES: '3',
  CLAUDE_CODE_STREAM_EVENT_HOLD_MS: '50',
  CLAUDE_CODE_ENABLE_TODO_TOOLS: '1',
  CLAUDE_CODE_ENABLE_TASKS: '0',
  ENABLE_TOOL_SEARCH: 'false',
  CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD: '1',
  /** The program refuses to skip permissions as root unless a variable says that it runs in a sandbox. */
  IS_SANDBOX: '1',
}

/** Tools of tool servers that need no permission, as Claude Code names them. */
const READ_ONLY_TOOLS = READ_ONLY_TERMINAL_TOOLS.map((name) => `mcp__${TERMINAL_SERVER}__${name}`)

/** A tool that only a person can answer. */
export const QUESTION_TOOL = 'AskUserQuestion'

/** Lines both ways, with requests for permission among them. */
const STREAM_ARGUMENTS = [
  '--print',
  '--output-format=stream-json',
  '--verbose',
  '--input-format=stream-json',
  '--include-partial-messages',
  '--permission-prompt-tool=stdio',
]

/**
 * A repository's own settings could allow tools that a person should be asked about. Its CLAUDE.md is read all the same: that of an
 * added folder belongs to no source.
 */
const ASKING_ARGUMENTS = ['--setting-sources=user', '--add-dir=.']

/** What a session of `/ws/claude-stream` may choose, where the program has its own login. */
export interface ClaudeStreamOptions extends ClaudeOptions {
  readonly model?: string
  readonly maxTurns?: number
  readonly maxBudgetUsd?: number
}

/** Arguments of Claude Code that its own user signed in and configured, for a session that asks before it uses tools. */
export function claudeStreamArguments(options: ClaudeStreamOptions): readonly string[] {
  const { model, maxTurns, maxBudgetUsd, permissionMode = 'default' } = options
  return [
    ...STREAM_ARGUMENTS,
    ...ASKING_ARGUMENTS,
    `--permission-mode=${permissionMode}`,
    ...toolArguments(options),
    ...(model === undefined ? [] : [`--model=${model}`]),
    ...(maxTurns === undefined ? [] : [`--max-turns=${maxTurns}`]),
    ...(maxBudgetUsd === undefined ? [] : [`--max-budget-usd=${maxBudgetUsd}`]),
  ]
}

/** Environment beside it. */
export const CLAUDE_STREAM_ENV: Readonly<Record<string, string>> = {
  CLAUDE_CODE_STARTUP_FAILURE_RESULTS: '1',
  CLAUDE_CODE_STREAM_EVENT_HOLD_MS: '50',
}

function toolArguments({
  allowedTools = [],
  disallowedTools = [],
  maxThinkingTokens,
}: Pick<ClaudeOptions, 'allowedTools' | 'disallowedTools' | 'maxThinkingTokens'>): readonly string[] {
  return [
    ...(allowedTools.length === 0 ? [] : [`--allowedTools=${allowedTools.join(',')}`]),
    ...(disallowedTools.length === 0 ? [] : [`--disallowedTools=${disallowedTools.join(',')}`]),
    ...(maxThinkingTokens === undefined ? [] : [`--max-thinking-tokens=${maxThinkingTokens}`]),
  ]
}

/** Arguments and environment of Claude Code for a run. */
export function claudeCommand(
  start: AgentStart,
  {
    scratch,
    settings,
    toolServers,
  }: {
    /** An empty folder of the user, mode 0700. */
    readonly scratch: string
    /** File with `claudeSettings` of the environment. */
    readonly settings: string
    /** File that configures the tool servers of the run. */
    readonly toolServers?: string
  },
): { readonly argv: readonly [string, ...string[]]; readonly env: Readonly<Record<string, string>> } {
  const { limits, claude = {} } = start
  const argv: [string, ...string[]] = [
    start.program,
    ...STREAM_ARGUMENTS,
    '--strict-mcp-config',
    `--settings=${settings}`,
    ...(start.permission === 'ask' ? ASKING_ARGUMENTS : ['--setting-sources=user,project']),
    `--permission-mode=${start.permission === 'ask' ? (claude.permissionMode ?? 'default') : 'bypassPermissions'}`,
  ]
  if (toolServers !== undefined) argv.push(`--mcp-config=${toolServers}`)
  const allowedTools = [...(toolServers === undefined ? [] : READ_ONLY_TOOLS), ...(claude.allowedTools ?? [])]
  const disallowedTools = [
    ...(start.permission === 'auto' ? [QUESTION_TOOL] : []),
    ...(claude.disallowedTools ?? []),
  ]
  argv.push(...toolArguments({ ...claude, allowedTools, disallowedTools }))
  if (start.tools !== undefined) argv.push(`--tools=${start.tools.join(',')}`)
  if (start.model !== undefined) argv.push(`--model=${start.model}`)
  if (start.systemPrompt !== undefined) argv.push(`--append-system-prompt=${start.systemPrompt}`)
  if (start.outputSchema !== undefined) argv.push(`--json-schema=${start.outputSchema}`)
  if (start.resume !== undefined) argv.push(`--resume=${start.resume}`)
  if (limits.maxTurns !== null) argv.push(`--max-turns=${limits.maxTurns}`)
  if (limits.maxBudgetMicroUsd !== null)
    argv.push(`--max-budget-usd=${(limits.maxBudgetMicroUsd / 1_000_000).toFixed(6)}`)
  return { argv, env: { ...ENV, CLAUDE_CODE_TMPDIR: scratch, ...start.env } }
}

/** Model APIs other than the gateway's that settings of a repository may choose. */
const OTHER_APIS: Readonly<Record<string, string>> = {
  CLAUDE_CODE_USE_BEDROCK: '',
  CLAUDE_CODE_USE_VERTEX: '',
  CLAUDE_CODE_USE_FOUNDRY: '',
}

/** The file that `--settings` names: the environment of the run, which the settings of a repository would replace otherwise. */
export function claudeSettings(env: Readonly<Record<string, string>>): string {
  return JSON.stringify({ env: { ...OTHER_APIS, ...env } })
}

/** The file that `--mcp-config` names. */
export function claudeToolServers(servers: readonly ToolServer[]): string {
  const mcpServers: Record<string, unknown> = {}
  for (const { name, argv } of servers) {
    const [command, ...args] = argv
    mcpServers[name] = { type: 'stdio', command, args }
  }
  return JSON.stringify({ mcpServers })
}
