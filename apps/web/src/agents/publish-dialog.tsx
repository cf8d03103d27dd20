import { type ReactElement, useState } from 'react'
import { type Published, publishRun, type Run } from '../api/runs.ts'
import { Dialog, FormDialog } from '../shell/dialog.tsx'
import { messageOf } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'
import { OutsideLink } from './outside-link.tsx'

const { publish: texts } = agentTexts

/** Usual length of the first line of a commit. */
const MAX_TITLE_CHARS = 72
const MAX_SLUG_CHARS = 40

/** A name for the branch, from the first words of the task. */
export function branchOf(task: string): string {
  const slug = task
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG_CHARS)
    .replaceAll(/^-+|-+$/g, '')
  return `agent/${slug === '' ? 'changes' : slug}`
}

function Result({
  published: { commit, branch, pullRequest },
  onClose,
}: {
  readonly published: Published
  readonly onClose: () => void
}): ReactElement {
  return (
    <Dialog title={texts.done} onClose={onClose}>
      <div className="dialog-text" role="status">
        <p>{texts.pushed(commit.slice(0, 10), branch)}</p>
        {pullRequest !== null && (
          <p>
            <OutsideLink href={pullRequest.url} text={texts.linkText}>
              {texts.pullRequestNumber(pullRequest.number)}
            </OutsideLink>
          </p>
        )}
      </div>
      <div className="dialog-actions">
        <button type="button" className="primary" onClick={onClose}>
          {texts.close}
        </button>
      </div>
    </Dialog>
  )
}

/** Pushes the changes of an ended run to a new branch, and opens a pull request. */
export function PublishDialog({
  run,
  onClose,
}: {
  readonly run: Run
  readonly onClose: () => void
}): ReactElement {
  const mayOpen = run.publishable?.pullRequest === true
  const [firstLine = ''] = run.task.trim().split('\n')
  const [form, setForm] = useState({
    branch: branchOf(firstLine),
    title: firstLine
      .replace(/[\p{C}\s]+/gu, ' ')
      .slice(0, MAX_TITLE_CHARS)
      .trim(),
    body: run.result?.summary ?? '',
    pullRequest: mayOpen,
  })
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [published, setPublished] = useState<Published>()
  const change = (part: Partial<typeof form>): void => setForm((now) => ({ ...now, ...part }))
  const publish = async (): Promise<void> => {
    setBusy(true)
    try {
      setPublished(await publishRun(run.id, form))
    } catch (caught) {
      setProblem(messageOf(caught))
      setBusy(false)
    }
  }
  if (published !== undefined) return <Result published={published} onClose={onClose} />
  return (
    <FormDialog
      title={texts.title}
      problem={problem}
      yes={form.pullRequest ? texts.openPullRequest : texts.push}
      busy={isBusy ? texts.busy : undefined}
      onSubmit={publish}
      onChange={() => setProblem('')}
      onClose={onClose}
    >
      <p className="dim">{texts.repository(run.repo ?? '')}</p>
      <label className="field">
        <span>{texts.branch}</span>
        <input
          autoFocus
          required
          value={form.branch}
          spellCheck={false}
          autoCapitalize="none"
          onChange={(event) => change({ branch: event.target.value })}
        />
      </label>
      <label className="field">
        <span>{texts.commitTitle}</span>
        <input required value={form.title} onChange={(event) => change({ title: event.target.value })} />
      </label>
      <label className="field">
        <span>{texts.body}</span>
        <textarea rows={5} value={form.body} onChange={(event) => change({ body: event.target.value })} />
      </label>
      {mayOpen && (
        <label className="choice">
          <input
            type="checkbox"
            checked={form.pullRequest}
            onChange={(event) => change({ pullRequest: event.target.checked })}
          />
          <span>{texts.pullRequest}</span>
        </label>
      )}
    </FormDialog>
  )
}
