import type { InputRequest, Question } from '@sandwire/agent'
import { type ReactElement, useId, useState } from 'react'
import type { RequestAnswer } from '../api/runs.ts'
import { agentTexts } from '../texts/agents.ts'
import type { AgentChannel } from './agent-channel.ts'
import { ToolInput } from './tool-call.tsx'
import type { RequestOutcome } from './transcript.ts'

const { request: texts } = agentTexts

type Choose = (question: string, answer: string) => void

function QuestionField({
  question: { question, options, allowsMany },
  answer,
  choose,
}: {
  readonly question: Question
  readonly answer: string
  readonly choose: Choose
}): ReactElement {
  const group = useId()
  const chosen = answer.split(', ')
  const labels = options.map(({ label }) => label)
  const own = chosen.filter((text) => text !== '' && !labels.includes(text)).join(', ')
  const toggle = (label: string, isOn: boolean): void => {
    const rest = allowsMany ? chosen.filter((text) => text !== '' && text !== label) : []
    choose(question, [...rest, ...(isOn ? [label] : [])].join(', '))
  }
  return (
    <fieldset className="choices">
      <legend>{question}</legend>
      {options.map(({ label, description }) => (
        <label key={label} className="choice">
          <input
            type={allowsMany ? 'checkbox' : 'radio'}
            name={group}
            checked={chosen.includes(label)}
            onChange={(event) => toggle(label, event.target.checked)}
          />
          <span>
            <strong>{label}</strong>
            <small>{description}</small>
          </span>
        </label>
      ))}
      <label className="field">
        <span>{texts.otherAnswer}</span>
        <input value={own} onChange={(event) => choose(question, event.target.value)} />
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
  const [answers, setAnswers] = useState<Readonly<Record<string, string>>>({})
  const answer = (given: RequestAnswer): Promise<void> => channel.answer(requestId, given)
  const titles = { permission: texts.permission, question: texts.question, plan: texts.plan, message: '' }
  const isUnanswered =
    kind === 'question' && questions.some(({ question }) => (answers[question] ?? '') === '')
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
            answer={answers[question.question] ?? ''}
            choose={(name, given) => setAnswers({ ...answers, [name]: given })}
          />
        ))}
      {!isPending && questions.map(({ question }) => <p key={question}>{question}</p>)}
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
      {outcome !== undefined && (
        <p className="dim">
          {outcome.by === null
            ? texts.outcomes[outcome.outcome]
            : texts.by(texts.outcomes[outcome.outcome], outcome.by)}
        </p>
      )}
    </div>
  )
}
