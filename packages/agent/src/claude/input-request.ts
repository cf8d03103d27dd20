import { boundText, boundValue } from '../bound.ts'
import { type InputRequest, MAX_INPUT_CHARS, type Question } from '../event.ts'
import { type Json, recordsAt, textAt } from '../json.ts'
import { QUESTION_TOOL } from './command.ts'
import { titleOf } from '../tool-title.ts'

const MAX_QUESTIONS = 16
const MAX_OPTIONS = 32
const MAX_CHARS = 4_000

/** What a request to call a tool is. */
export function requestKind(tool: string): 'question' | 'plan' | 'permission' {
  return tool === QUESTION_TOOL ? 'question' : tool === 'ExitPlanMode' ? 'plan' : 'permission'
}

/** What a person is asked when the program wants to call a tool. `input` is redacted. */
export function describeRequest(
  request: { readonly requestId: string; readonly name: string; readonly input: Json },
  deadlineMs: number,
): InputRequest {
  const { requestId, name, input } = request
  const title = titleOf(name, input)
  const kind = requestKind(name)
  const questions =
    kind === 'question' ? recordsAt(input, 'questions').slice(0, MAX_QUESTIONS).map(questionOf) : undefined
  return {
    prompt: promptOf(kind, title, questions),
    requestId,
    kind,
    deadlineMs,
    tool: { name, title, input: boundValue(input, MAX_INPUT_CHARS) },
    ...(questions === undefined ? {} : { questions }),
  }
}

function promptOf(
  kind: InputRequest['kind'],
  title: string,
  questions: readonly Question[] | undefined,
): string {
  if (kind === 'plan') return 'The agent proposes a plan. Accept it?'
  if (kind === 'question') return questions?.[0]?.question ?? 'The agent has a question'
  return `Allow ${title}?`
}

function questionOf(source: Json): Question {
  return {
    question: bounded(source, 'question'),
    header: bounded(source, 'header'),
    allowsMany: source['multiSelect'] === true,
    options: recordsAt(source, 'options')
      .slice(0, MAX_OPTIONS)
      .map((option) => ({ label: bounded(option, 'label'), description: bounded(option, 'description') })),
  }
}

function bounded(source: Json, name: string): string {
  return boundText(textAt(source, name) ?? '', MAX_CHARS).text
}
