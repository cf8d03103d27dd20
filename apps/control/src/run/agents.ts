import { ANTHROPIC_PROVIDER, type RunSettings } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import type { GatewayAccess } from '../credentials/grants.ts'

/** A coding agent that runs can use. */
export interface AgentDefinition {
  readonly name: string
  readonly title: string
  /** What its program speaks. */
  readonly driver: 'claude' | 'acp'
  /** Path of the program in every sandbox. */
  readonly program: string
  readonly args: readonly string[]
  /** In runs with permission `ask`, it asks before it uses tools of tool servers. */
  readonly asksForTools: boolean
  /** True when its program, without arguments, is an interface in a terminal. */
  readonly hasTui: boolean
  /** True for programs that the host installs. */
  readonly isInstalled: boolean
  /** Added to the environment that the gateway gives. */
  readonly env: (
    access: GatewayAccess,
    model: string | undefined,
    isAsking: boolean,
  ) => Readonly<Record<string, string>>
}

/** For agents that need the name of a model, in runs that name none. */
const DEFAULT_MODEL = 'claude-sonnet-4-5'

/** Name of Claude Code among the agents. */
export const CLAUDE = 'claude'

const CLAUDE_CODE: AgentDefinition = {
  name: CLAUDE,
  title: 'Claude Code',
  driver: 'claude',
  program: '/opt/agents/claude/claude',
  args: [],
  isInstalled: true,
  hasTui: true,
  asksForTools: true,
  env: () => ({}),
}

/** Libraries of OpenCode's program, by the format of the model API. */
const OPENCODE_LIBRARIES = { anthropic: '@ai-sdk/anthropic', openai: '@ai-sdk/openai-compatible' } as const

/** Tools that change a terminal, as OpenCode names them. */
const TERMINAL_TOOLS = ['open', 'type', 'close'].map((tool) => `terminals_terminal_${tool}`)
const TERMINAL_PERMISSIONS = {
  ask: Object.fromEntries(TERMINAL_TOOLS.map((tool) => [tool, 'ask'])),
  allow: {},
}

/** The provider, model and permissions of OpenCode are settings in a variable; nothing else is loaded from the network. */
function openCodeEnvironment(
  { api, baseUrl, token }: GatewayAccess,
  model = DEFAULT_MODEL,
  isAsking: boolean,
): Readonly<Record<string, string>> {
  const name = `sandwire/${model}`
  const permission = isAsking ? 'ask' : 'allow'
  return {
    OPENCODE_CONFIG_CONTENT: JSON.stringify({
      provider: {
        sandwire: {
          npm: OPENCODE_LIBRARIES[api],
          name: 'Sandwire',
          options: { baseURL: `${baseUrl}/v1`, apiKey: token },
          models: { [model]: { name: model, tool_call: true } },
        },
      },
      model: name,
      small_model: name,
      autoupdate: false,
      share: 'disabled',
      permission: { edit: permission, bash: permission, ...TERMINAL_PERMISSIONS[permission] },
    }),
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
  }
}

const OPENCODE: AgentDefinition = {
  name: 'opencode',
  title: 'OpenCode',
  driver: 'acp',
  program: '/opt/agents/opencode/opencode',
  args: ['acp'],
  isInstalled: true,
  hasTui: true,
  asksForTools: true,
  env: openCodeEnvironment,
}

/** Replaces `{gateway}`, `{token}` and `{model}` in a variable that the operator declares. */
function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\{(gateway|token|model)\}/g, (_, name: string) => values[name] ?? '')
}

function declared({ name, title, program, args, env }: RunSettings['agents'][number]): AgentDefinition {
  return {
    name,
    title: title ?? name,
    driver: 'acp',
    program,
    args,
    isInstalled: false,
    hasTui: false,
    asksForTools: false,
    env: (access, model = DEFAULT_MODEL) => {
      const values = { gateway: access.baseUrl, token: access.token, model }
      return Object.fromEntries(Object.entries(env).map(([key, text]) => [key, fill(text, values)]))
    },
  }
}

/** All agents, those of the operator last. */
export function agentsOf(settings: Pick<RunSettings, 'agents'>): readonly AgentDefinition[] {
  return [CLAUDE_CODE, OPENCODE, ...settings.agents.map(declared)]
}

/** The model provider of an agent. */
export function providerOf({ providers }: Pick<RunSettings, 'providers'>, agent: string): string {
  return providers[agent]?.provider ?? ANTHROPIC_PROVIDER
}

/** Throws `bad_request` for an agent that is not offered. */
export function findAgent(settings: Pick<RunSettings, 'agents'>, name: string): AgentDefinition {
  const agents = agentsOf(settings)
  const found = agents.find((agent) => agent.name === name)
  if (found !== undefined) return found
  const problem = `expected ${agents.map((agent) => agent.name).join(' or ')}`
  throw new SandwireError('bad_request', `Cannot use "agent": ${problem}`, {
    details: { field: 'agent', problem },
  })
}
