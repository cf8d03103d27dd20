import type { InputRequest, Question } from '@sandwire/agent'
import { type ReactElement, useId, useState } from 'react'
import type { RequestAnswer } from '../api/runs.ts'
import { agentTexts } from '../texts/agents.ts'
import type { AgentChannel } from './agent-channel.ts'
import { choose, formatAnswer, type GivenAnswer, NO_ANSWER, write } from './given-answer.ts'
import { ToolInput } from './tool-call.tsx'
import type { RequestOutcome } from './transcript.ts'

const { request: texts } = agentTexts

function QuestionField({
  question,
  answer,
  change,
}: {
  readonly question: Question
  readonly answer: GivenAnswer
  readonly change: (answer: GivenAnswer) => void
}): ReactElement {
  const group = useId()
  const { options, allowsMany } = question
  return (
    <fieldset className="choices">
      <legend>{question.question}</legend>
      {options.map(({ label, description }) => (
        <label key={label} className="choice">
          <input
            type={allowsMany ? 'checkbox' : 'radio'}
            name={group}
            checked={answer.labels.includes(label)}
            onChange={(event) => change(choose(question, answer, label, event.target.checked))}
          />
          <span>
            <strong>{label}</strong>
            <small>{description}</small>
          </span>
        </label>
      ))}
      <label className="field">
        <span>{texts.otherAnswer}</span>
        <input value={answer.own} onChange={(event) => change(write(question, answer, event.target.value))} />
      </label>
    </fieldset>
  )
}

/** Answers a pending request. */
function RequestButtons({
  kind,
  deadlineMs,
  isUnanswered,
  alwaysTool,
  answers,
  answer,
}: Pick<InputRequest, 'kind' | 'deadlineMs'> & {
  /** The tool that can be allowed for all further calls. */
  readonly alwaysTool: string | undefined
  readonly isUnanswered: boolean
  /** Answers to questions. */
  readonly answers: RequestAnswer['answers']
  readonly answer: (given: RequestAnswer) => Promise<void>
}): ReactElement {
  const [reason, setReason] = useState('')
  const [isBusy, setBusy] = useState(false)
  const give = async (given: RequestAnswer): Promise<void> => {
    setBusy(true)
    await answer(given)
    setBusy(false)
  }
  const allow = (more: Partial<RequestAnswer> = {}): void => void give({ decision: 'allow', ...more })
  const deny = (): void =>
    void give({ decision: 'deny', ...(reason.trim() === '' ? {} : { message: reason.trim() }) })
  const labels = { permission: texts.allow, plan: texts.accept, question: texts.answer, message: '' }
  return (
    <>
      {kind !== 'question' && (
        <label className="field">
          <span>{texts.denyReason}</span>
          <input value={reason} onChange={(event) => setReason(event.target.value)} />
        </label>
      )}
      <div className="request-actions">
        <button
          type="button"
          className="primary"
          disabled={isBusy || isUnanswered}
          onClick={() => allow(answers === undefined ? {} : { answers })}
        >
          {labels[kind]}
        </button>
        {alwaysTool !== undefined && (
          <button type="button" disabled={isBusy} onClick={() => allow({ always: true })}>
            {texts.always(alwaysTool)}
          </button>
        )}
        {kind === 'permission' && alwaysTool === undefined && (
          <button type="button" disabled={isBusy} onClick={() => allow({ acceptsEdits: true })}>
            {texts.allowEdits}
          </button>
        )}
        <button type="button" disabled={isBusy} onClick={deny}>
          {texts.deny}
        </button>
      </div>
      {deadlineMs !== null && <p className="dim">{texts.until(new Date(deadlineMs).toLocaleTimeString())}</p>}
    </>
  )
}

function describeOutcome(kind: InputRequest['kind'], { outcome, by, message }: RequestOutcome): string {
  const what = kind === 'question' && outcome === 'allow' ? texts.answered : texts.outcomes[outcome]
  const text = by === null ? what : texts.by(what, by)
  return message === undefined ? text : `${text}: ${message}`
}

/** What the agent asks for, and who answered. Pending requests have buttons. */
export function RequestCard({
  channel,
  request,
  outcome,
  isPending,
}: {
  readonly channel: AgentChannel
  readonly request: InputRequest
  readonly outcome: RequestOutcome | undefined
  readonly isPending: boolean
}): ReactElement {
  const { kind, prompt, tool, questions = [], deadlineMs, requestId } = request
  const [given, setGiven] = useState<Readonly<Record<string, GivenAnswer>>>({})
  const answer = (chosen: RequestAnswer): Promise<void> => channel.answer(requestId, chosen)
  const titles = { permission: texts.permission, question: texts.question, plan: texts.plan, message: '' }
  const answers = Object.fromEntries(
    questions.map(({ question }) => [question, formatAnswer(given[question] ?? NO_ANSWER)]),
  )
  const isUnanswered = kind === 'question' && Object.values(answers).includes('')
  return (
    <div className={`request-card ${isPending ? 'pending' : ''}`}>
      <h3>{titles[kind]}</h3>
      {(kind === 'plan' || (kind === 'permission' && tool === undefined)) && <p>{prompt}</p>}
      {kind === 'permission' && tool !== undefined && <p className="tool-name">{tool.name}</p>}
      {kind === 'permission' && tool !== undefined && <ToolInput name={tool.name} input={tool.input} />}
      {isPending &&
        questions.map((question) => (
          <QuestionField
            key={question.question}
            question={question}
            answer={given[question.question] ?? NO_ANSWER}
            change={(chosen) => setGiven({ ...given, [question.question]: chosen })}
          />
        ))}
      {!isPending &&
        questions.map(({ question }) => (
          <p key={question}>
            {question} <strong>{outcome?.answers?.[question]}</strong>
          </p>
        ))}
      {isPending && (
        <RequestButtons
          kind={kind}
          deadlineMs={deadlineMs}
          isUnanswered={isUnanswered}
          alwaysTool={kind === 'permission' && channel.canAllowAlways ? tool?.name : undefined}
          answers={kind === 'question' ? answers : undefined}
          answer={answer}
        />
      )}
      {outcome !== undefined && <p className="dim">{describeOutcome(kind, outcome)}</p>}
    </div>
  )
}
