import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useId, useState } from 'react'
import { createConversation, sendFirstMessage } from '../api/conversations.ts'
import { type Agent, createRun, listAgents } from '../api/runs.ts'
import { FormDialog } from '../shell/dialog.tsx'
import { useParts } from '../state/context.ts'
import { messageOf } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'
import { openConversation, openRun } from './open-agent.ts'
import { type AgentForm, type AgentPlan, planAgent } from './plan-agent.ts'

const { create: texts } = agentTexts

function Choice({
  group,
  label,
  hint,
  isChosen,
  choose,
}: {
  readonly group: string
  readonly label: string
  readonly hint: string
  readonly isChosen: boolean
  readonly choose: () => void
}): ReactElement {
  return (
    <label className="choice">
      <input type="radio" name={group} checked={isChosen} onChange={choose} />
      <span>
        <strong>{label}</strong>
        <small>{hint}</small>
      </span>
    </label>
  )
}

/** Agents to choose from; empty until they are known. */
function useAgents(): readonly Agent[] {
  const [agents, setAgents] = useState<readonly Agent[]>([])
  useEffect(() => {
    // Without them, the server's default is used.
    void listAgents().then(setAgents, () => undefined)
  }, [])
  return agents
}

/** The form for a new run or conversation. */
export function NewAgentDialog({
  kind,
  task = '',
  sandbox,
  onClose,
}: {
  readonly kind: AgentForm['kind']
  readonly task?: string
  /** Default: the selected one. */
  readonly sandbox?: string
  readonly onClose: () => void
}): ReactElement {
  const { workbench, agents: list } = useParts()
  const current = useStore(workbench.current)
  const sandboxes = useStore(workbench.sandboxes)
  const usable = sandboxes.kind === 'ready' ? sandboxes.value.filter(({ access }) => access !== 'viewer') : []
  const preferred = usable.find(({ id }) => id === (sandbox ?? current)) ?? usable[0]
  const [form, setForm] = useState<AgentForm>({
    kind,
    task,
    where: preferred !== undefined ? 'sandbox' : kind === 'run' ? 'repo' : 'empty',
    sandbox: preferred?.id,
    repo: '',
    ref: '',
    agent: '',
    model: '',
    permission: 'ask',
    isInteractive: true,
    budget: '',
  })
  const agents = useAgents()
  const [key] = useState(() => crypto.randomUUID())
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const groups = useId()
  const change = (part: Partial<AgentForm>): void => {
    setForm((now) => ({ ...now, ...part }))
    setProblem('')
  }
  const begin = async (plan: Exclude<AgentPlan, { kind: 'invalid' }>): Promise<void> => {
    if (plan.kind === 'run') return openRun(workbench, await createRun(plan.run, key))
    const { message } = plan
    const conversation = await createConversation({ ...plan.conversation, sessionId: key })
    if (message !== '') await sendFirstMessage(conversation.id, key, message)
    openConversation(workbench, { ...conversation, title: message })
  }
  const start = async (): Promise<void> => {
    const plan = planAgent(form)
    if (plan.kind === 'invalid') return setProblem(plan.problem)
    setBusy(true)
    try {
      await begin(plan)
      onClose()
      await Promise.all([list.refresh(), workbench.refreshSandboxes()])
    } catch (caught) {
      setProblem(messageOf(caught))
      setBusy(false)
    }
  }
  const isRun = kind === 'run'
  const field = (name: 'repo' | 'ref' | 'model' | 'budget', label: string, placeholder: string) => (
    <label className="field">
      <span>{label}</span>
      <input
        value={form[name]}
        placeholder={placeholder}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(event) => change({ [name]: event.target.value })}
      />
    </label>
  )
  return (
    <FormDialog
      title={isRun ? texts.title : texts.conversationTitle}
      problem={problem}
      yes={texts.start}
      busy={isBusy ? texts.starting : undefined}
      onSubmit={start}
      onClose={onClose}
    >
      <label className="field">
        <span>{isRun ? texts.task : texts.message}</span>
        <textarea
          autoFocus
          rows={4}
          value={form.task}
          placeholder={isRun ? texts.taskHint : texts.messageHint}
          onChange={(event) => change({ task: event.target.value })}
        />
      </label>
      <fieldset className="choices">
        <legend>{texts.where}</legend>
        {usable.length > 0 && (
          <Choice
            group={`${groups} where`}
            label={texts.sandbox}
            hint={texts.sandboxHint}
            isChosen={form.where === 'sandbox'}
            choose={() => change({ where: 'sandbox' })}
          />
        )}
        <Choice
          group={`${groups} where`}
          label={texts.repository}
          hint={texts.repositoryHint}
          isChosen={form.where === 'repo'}
          choose={() => change({ where: 'repo' })}
        />
        {!isRun && (
          <Choice
            group={`${groups} where`}
            label={texts.empty}
            hint={texts.emptyHint}
            isChosen={form.where === 'empty'}
            choose={() => change({ where: 'empty' })}
          />
        )}
      </fieldset>
      {form.where === 'sandbox' && (
        <label className="field">
          <span>{texts.sandboxName}</span>
          <select value={form.sandbox} onChange={(event) => change({ sandbox: event.target.value })}>
            {usable.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {form.where === 'repo' && (
        <>
          {field('repo', texts.url, 'https://…')}
          {field('ref', texts.ref, texts.optional)}
        </>
      )}
      <fieldset className="choices">
        <legend>{texts.permission}</legend>
        <Choice
          group={`${groups} permission`}
          label={texts.ask}
          hint={texts.askHint}
          isChosen={form.permission === 'ask'}
          choose={() => change({ permission: 'ask' })}
        />
        <Choice
          group={`${groups} permission`}
          label={texts.auto}
          hint={texts.autoHint}
          isChosen={form.permission === 'auto'}
          choose={() => change({ permission: 'auto' })}
        />
      </fieldset>
      {isRun && (
        <label className="choice">
          <input
            type="checkbox"
            checked={form.isInteractive}
            onChange={(event) => change({ isInteractive: event.target.checked })}
          />
          <span>{texts.interactive}</span>
        </label>
      )}
      {agents.length > 1 && (
        <label className="field">
          <span>{texts.agent}</span>
          <select value={form.agent} onChange={(event) => change({ agent: event.target.value })}>
            {agents.map(({ name, title }, at) => (
              <option key={name} value={at === 0 ? '' : name}>
                {title}
              </option>
            ))}
          </select>
        </label>
      )}
      {field('model', texts.model, texts.optional)}
      {field('budget', texts.budget, texts.optional)}
    </FormDialog>
  )
}
