import type { RunSettings } from '@sandwire/operator-settings'
import { type AgentStart, DEFAULT_LIMITS } from '@sandwire/agent'
import { GATEWAY_PATHS } from '@sandwire/internal-api'
import type { GatewayAccess, GatewayGrant, GatewayGrants, GatewayUsage } from '../credentials/grants.ts'
import { findAgent, providerOf } from './agents.ts'
import type { RunRecord, RunRequest, Spent } from './record.ts'

export const MICRO = 1_000_000
/** Output of one request to the model. */
export const MAX_OUTPUT_TOKENS = 64_000
/** Time to queue, clone and collect, in addition to the time limit of the agent. */
const GRANT_MARGIN_MS = 60 * 60_000

/** The tools of an agent that only reads. */
const READ_ONLY_TOOLS = ['Read', 'Grep', 'Glob']

const SCHEMAS: Readonly<Record<RunRequest['purpose'], unknown>> = {
  change: undefined,
  research: {
    type: 'object',
    required: ['summary', 'findings'],
    properties: {
      summary: { type: 'string' },
      findings: {
        type: 'array',
        items: {
          type: 'object',
          required: ['finding'],
          properties: {
            finding: { type: 'string' },
            file: { type: 'string' },
            line: { type: 'integer', minimum: 1 },
          },
        },
      },
    },
  },
  review: {
    type: 'object',
    required: ['summary', 'comments'],
    properties: {
      summary: { type: 'string' },
      comments: {
        type: 'array',
        items: {
          type: 'object',
          required: ['file', 'line', 'comment'],
          properties: {
            file: { type: 'string' },
            line: { type: 'integer', minimum: 1 },
            comment: { type: 'string' },
          },
        },
      },
    },
  },
}

/** Throws `agent_not_configured` with what the operator must set, and `bad_request` for a model that is not offered. */
export function checkModel(
  grants: Pick<GatewayGrants, 'check'>,
  settings: Pick<RunSettings, 'providers'>,
  { agent, model }: { readonly agent: string; readonly model?: string | undefined },
): Promise<void> {
  const provider = providerOf(settings, agent)
  return grants.check({ provider, ...(model === undefined ? {} : { model }) })
}

/** What the run may request of the credential gateway. */
export function grantOf(
  { id, sandbox, request }: Pick<RunRecord, 'id' | 'sandbox' | 'request'>,
  settings: Pick<RunSettings, 'models' | 'providers'>,
  nowMs: number,
): GatewayGrant {
  const { source, limits } = request
  return {
    run: id,
    sandbox,
    expiresMs: nowMs + limits.wallClockSeconds * 1000 + GRANT_MARGIN_MS,
    provider: providerOf(settings, request.agent),
    models: [...settings.models],
    budgetMicroUsd: Math.round(limits.budgetUsd * MICRO),
    maxOutputTokens: MAX_OUTPUT_TOKENS,
    hosts: [...(request.hosts ?? [])],
    ...(source.kind === 'repo'
      ? {
          git: {
            repository: source.repo,
            push: request.isInteractive ? 'agent' : 'none',
            ...(source.installationId === undefined ? {} : { installationId: source.installationId }),
          },
        }
      : {}),
  }
}

/** The first message of the agent. */
function taskText({ task, context }: Pick<RunRequest, 'task' | 'context'>): string {
  return context === undefined || context === '' ? task : `${task}\n\n${context}`
}

/** The request that starts the agent. */
export function agentStartOf(
  { request }: Pick<RunRecord, 'request'>,
  access: GatewayAccess,
  settings: Pick<RunSettings, 'agents'>,
): AgentStart {
  const { permission, limits, isInteractive, purpose, stream } = request
  const { modelAlias, resume, restSeconds, ...claude } = stream ?? {}
  const model = modelAlias ?? request.model
  const { env, token } = access
  const agent = findAgent(settings, request.agent)
  const schema = SCHEMAS[purpose]
  return {
    agent: agent.driver,
    program: agent.program,
    ...(agent.args.length === 0 ? {} : { args: agent.args }),
    task: stream === undefined ? taskText(request) : '',
    ...(model === undefined ? {} : { model }),
    permission,
    ...(purpose === 'change' ? {} : { tools: READ_ONLY_TOOLS }),
    ...(purpose === 'change' && (agent.asksForTools || permission === 'auto') ? { terminals: true } : {}),
    ...(schema === undefined ? {} : { outputSchema: JSON.stringify(schema) }),
    isInteractive,
    ...(stream === undefined ? {} : { claude, shares: true }),
    ...(resume === undefined ? {} : { resume }),
    env: { ...env, ...agent.env(access, model, permission === 'ask') },
    secrets: [token],
    ...(env['SANDWIRE_GATEWAY_URL'] === undefined
      ? {}
      : { wake: { url: `${env['SANDWIRE_GATEWAY_URL']}${GATEWAY_PATHS.wake}`, token } }),
    limits: {
      ...DEFAULT_LIMITS,
      idleMs: limits.idleSeconds * 1000,
      ...(restSeconds === undefined ? {} : { restMs: restSeconds * 1000 }),
      wallClockMs: limits.wallClockSeconds * 1000,
      approvalMs: limits.approvalSeconds * 1000,
      maxTurns: limits.turns,
      maxBudgetMicroUsd: Math.round(limits.budgetUsd * MICRO),
    },
  }
}

export function toSpent(usage: GatewayUsage): Spent {
  const { costMicroUsd, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, requests } = usage
  return {
    costUsd: costMicroUsd / MICRO,
    inputTokens,
    outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    requests,
  }
}
