import type { NewConversation } from '../api/conversations.ts'
import type { NewRun } from '../api/runs.ts'
import { agentTexts } from '../texts/agents.ts'

const { create: texts } = agentTexts

export interface AgentForm {
  readonly kind: 'conversation' | 'run'
  /** Of a conversation: its first message, which may be empty. */
  readonly task: string
  /** `empty`: a new, empty sandbox, for conversations. */
  readonly where: 'sandbox' | 'repo' | 'empty'
  readonly sandbox: string | undefined
  readonly repo: string
  readonly ref: string
  /** Empty: the server's default. */
  readonly agent: string
  readonly model: string
  readonly permission: 'auto' | 'ask'
  readonly isInteractive: boolean
  readonly budget: string
}

export type AgentPlan =
  | { readonly kind: 'run'; readonly run: NewRun }
  | {
      readonly kind: 'conversation'
      readonly conversation: Omit<NewConversation, 'sessionId'>
      readonly message: string
    }
  | { readonly kind: 'invalid'; readonly problem: string }

function invalid(problem: string): AgentPlan {
  return { kind: 'invalid', problem }
}

/** Checks the form for a new run or conversation. The server checks the rest. */
export function planAgent(form: AgentForm): AgentPlan {
  const [task, repo, ref, model, budget] = [
    form.task.trim(),
    form.repo.trim(),
    form.ref.trim(),
    form.model.trim(),
    form.budget.trim(),
  ]
  if (task === '' && form.kind === 'run') return invalid(texts.noTask)
  if (form.where === 'sandbox' && form.sandbox === undefined) return invalid(texts.noSandbox)
  if (form.where === 'repo' && repo === '') return invalid(texts.noRepository)
  const budgetUsd = Number(budget)
  if (budget !== '' && !(budgetUsd > 0)) return invalid(texts.badBudget)
  const common = {
    ...(form.where === 'repo' ? { repo, ...(ref === '' ? {} : { ref }) } : {}),
    ...(form.where === 'sandbox' && form.sandbox !== undefined ? { sandbox: form.sandbox } : {}),
    ...(model === '' ? {} : { model }),
    ...(form.agent === '' ? {} : { agent: form.agent }),
    permission: form.permission,
  }
  if (form.kind === 'conversation')
    return {
      kind: 'conversation',
      conversation: { ...common, ...(budget === '' ? {} : { budgetUsd }) },
      message: task,
    }
  return {
    kind: 'run',
    run: {
      task,
      ...common,
      interactive: form.isInteractive,
      ...(budget === '' ? {} : { limits: { budgetUsd } }),
      keep: true,
    },
  }
}
