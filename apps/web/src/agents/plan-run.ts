import type { NewRun } from '../api/runs.ts'
import { agentTexts } from '../texts/agents.ts'

const { create: texts } = agentTexts

export interface RunForm {
  readonly task: string
  readonly where: 'sandbox' | 'repo'
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

export type RunPlan =
  | { readonly kind: 'ready'; readonly run: NewRun }
  | { readonly kind: 'invalid'; readonly problem: string }

function invalid(problem: string): RunPlan {
  return { kind: 'invalid', problem }
}

/** Checks the form for a new run. The server checks the rest. */
export function planRun(form: RunForm): RunPlan {
  const [task, repo, ref, model, budget] = [
    form.task.trim(),
    form.repo.trim(),
    form.ref.trim(),
    form.model.trim(),
    form.budget.trim(),
  ]
  if (task === '') return invalid(texts.noTask)
  if (form.where === 'sandbox' && form.sandbox === undefined) return invalid(texts.noSandbox)
  if (form.where === 'repo' && repo === '') return invalid(texts.noRepository)
  const budgetUsd = Number(budget)
  if (budget !== '' && !(budgetUsd > 0)) return invalid(texts.badBudget)
  return {
    kind: 'ready',
    run: {
      task,
      ...(form.where === 'repo' ? { repo, ...(ref === '' ? {} : { ref }) } : {}),
      ...(form.where === 'sandbox' && form.sandbox !== undefined ? { sandbox: form.sandbox } : {}),
      ...(form.agent === '' ? {} : { agent: form.agent }),
      ...(model === '' ? {} : { model }),
      permission: form.permission,
      interactive: form.isInteractive,
      ...(budget === '' ? {} : { limits: { budgetUsd } }),
      keep: true,
    },
  }
}
