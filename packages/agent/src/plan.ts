import type { PlanStep, RunEvent } from './event.ts'
import { boundText } from './bound.ts'
import { MAX_TEXT_CHARS } from './event.ts'

const MAX_STEPS = 100
const MAX_STEP_CHARS = 500

/** Items of lists that are not indented: `1. x`, `- x`, `* x`, `- [ ] x`, `- [x] x`. */
const ITEM = /^(?:[-*+]|\d{1,3}[.)])\s+(?:\[([ xX])\]\s+)?(.+)$/

/** The event of a plan in Markdown. Its steps are the top-level list items; without any, its headings; else the whole text. */
export function planEvent(markdown: string): Extract<RunEvent, { type: 'plan' }> {
  const lines = markdown.split('\n').map((line) => line.trimEnd())
  const items = lines.flatMap(stepOf)
  const headings = lines.flatMap((line) => /^#{2,6}\s+(.+)$/.exec(line)?.[1] ?? []).map(pending)
  const found = items.length > 0 ? items : headings
  const steps = found.length > 0 ? found : [pending(lines.find((line) => line !== '') ?? '')]
  return { type: 'plan', steps: steps.slice(0, MAX_STEPS), text: boundText(markdown, MAX_TEXT_CHARS).text }
}

function stepOf(line: string): readonly PlanStep[] {
  const match = ITEM.exec(line)
  if (match?.[2] === undefined) return []
  const isDone = match[1] === 'x' || match[1] === 'X'
  return [{ ...pending(match[2]), status: isDone ? 'completed' : 'pending' }]
}

function pending(title: string): PlanStep {
  return { title: title.slice(0, MAX_STEP_CHARS).toWellFormed(), status: 'pending' }
}
