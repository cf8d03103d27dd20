import type { ClaudeStreamOptions } from '@sandwire/agent'
import type { TicketBinding } from '../auth/identity.ts'
import type { AttachDependencies } from '../routes/attach.ts'
import { CLAUDE } from '../run/agents.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { ClaudeQuery } from './claude-query.ts'
import { openSession, selectionOf, toAttachCall } from './open-session.ts'
import { findRefusal } from './pty-providers.ts'

function optionsOf({ model, limits, options }: ClaudeQuery): ClaudeStreamOptions {
  const { modelAlias, resume: _, ...claude } = options
  const chosen = modelAlias ?? model
  const { turns, budgetUsd } = limits
  return {
    ...claude,
    ...(chosen === undefined || chosen === 'default' ? {} : { model: chosen }),
    ...(typeof turns === 'number' ? { maxTurns: turns } : {}),
    ...(budgetUsd === undefined ? {} : { maxBudgetUsd: budgetUsd }),
  }
}

/** Joins or starts a session of `/ws/claude-stream` that the provider runs itself, with the login of the sandbox's own machine. */
export function openClaudeExec(
  query: ClaudeQuery,
  call: SandboxCall,
  ticket: TicketBinding | undefined,
  deps: AttachDependencies,
): Promise<Response> {
  const { commands, sessionSettings } = deps
  // An agent runs any command.
  const refusal = findRefusal(CLAUDE, call, commands)
  const compat = {
    kind: 'claude',
    ...selectionOf(query, sessionSettings, refusal),
    options: optionsOf(query),
  } as const
  const command = { cmd: CLAUDE, args: [] }
  return openSession(
    query,
    ['claude'],
    toAttachCall(call, compat, command, ticket, sessionSettings),
    ticket,
    deps,
  )
}
