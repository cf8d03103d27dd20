import type { AgentTui } from '@sandwire/internal-api'
import type { RunSettings } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import type { Config } from '../config.ts'
import { type GatewayGrant, gatewayGrantsOf } from '../credentials/grants.ts'
import type { Env } from '../env.ts'
import { runtimeOf } from '../runtime.ts'
import type { AttachCall } from '../sandbox/call.ts'
import { ensureAgentProgram } from './agent-program.ts'
import { agentsOf, findAgent, providerOf } from './agents.ts'
import { checkModel, MAX_OUTPUT_TOKENS, MICRO, toSpent } from './agent-start.ts'
import { chooseModel } from './create.ts'
import type { TuiUsage } from './record.ts'

/** The grant ends with its session; this limits one whose session is never ended. */
const MAX_GRANT_MS = 30 * 24 * 3_600_000

/** The agent whose own interface a command starts: one whose name is the command. Sprites have programs of their own. */
export function findTui(
  { runs, provider }: Pick<Config, 'runs' | 'provider'>,
  cmd: string | null,
): string | undefined {
  if (provider === 'sprites') return undefined
  return agentsOf(runs).find(({ name, hasTui }) => hasTui && name === cmd)?.name
}

/** Throws what the operator must set, or that its program is being installed. */
export async function checkTui(env: Env, agent: string): Promise<void> {
  const { config } = runtimeOf(env)
  await checkModel(gatewayGrantsOf(env), config.runs, { agent })
  if (await ensureAgentProgram(env, config, findAgent(config.runs, agent))) return
  throw new SandwireError(
    'run_not_started',
    `Cannot open the agent yet: the server is installing the program of "${agent}"`,
  )
}

/** Names the grant of a session. */
function grantIdOf(session: string): string {
  return session.replace('.', '-')
}

function grantOf(
  {
    session,
    account,
    sandbox,
  }: { readonly session: string; readonly account: string; readonly sandbox: string },
  agent: string,
  settings: RunSettings,
  nowMs: number,
): GatewayGrant {
  return {
    run: grantIdOf(session),
    sandbox,
    session: { id: session, account },
    expiresMs: nowMs + MAX_GRANT_MS,
    provider: providerOf(settings, agent),
    models: [...settings.models],
    budgetMicroUsd: Math.round(settings.budgetUsd * MICRO),
    maxOutputTokens: MAX_OUTPUT_TOKENS,
    hosts: [],
  }
}

/** What the interface of an agent in a session has spent; undefined where there is no grant. */
export async function readTuiUsage(env: Env, session: string): Promise<TuiUsage | undefined> {
  const usage = await gatewayGrantsOf(env)
    .usage(grantIdOf(session))
    .catch(() => undefined)
  return usage === undefined ? undefined : { usage: toSpent(usage), budgetUsd: usage.budgetMicroUsd / MICRO }
}

/** The interface of an agent, with a grant of the gateway. Disposed of before `keep`, the grant is removed again. */
interface OpenTui extends AsyncDisposable {
  readonly caller: { readonly agentTui: AgentTui }
  keep(): void
}

/** Creates the grant of a session that is about to run an agent's interface; undefined for any other. */
export async function openTui(
  env: Env,
  { agentTui: name, session, identity: account }: Pick<AttachCall, 'agentTui' | 'session' | 'identity'>,
  sandbox: string,
): Promise<OpenTui | undefined> {
  if (name === undefined || session === undefined) return undefined
  const { config, nowMs } = runtimeOf(env)
  const grants = gatewayGrantsOf(env)
  const agent = findAgent(config.runs, name)
  const access = await grants.create(grantOf({ session, account, sandbox }, name, config.runs, nowMs()))
  const model = chooseModel(name, undefined, config.runs)
  const tuiEnv = {
    ...access.env,
    ...agent.env(access, model, true),
    ...(agent.driver === 'claude' && model !== undefined ? { ANTHROPIC_MODEL: model } : {}),
  }
  let isKept = false
  return {
    caller: { agentTui: { driver: agent.driver, program: agent.program, env: tuiEnv } },
    keep: () => {
      isKept = true
    },
    [Symbol.asyncDispose]: async () => {
      if (!isKept) await grants.remove(grantIdOf(session))
    },
  }
}
