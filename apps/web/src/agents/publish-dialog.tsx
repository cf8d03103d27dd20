import { type ReactElement, type ReactNode, useState } from 'react'
import type { Publication, Published } from '../api/publish.ts'
import { Dialog, FormDialog } from '../shell/dialog.tsx'
import { messageOf } from '../state/workbench.ts'
import { agentTexts } from '../texts/agents.ts'
import { OutsideLink } from './outside-link.tsx'

const { publish: texts } = agentTexts

/** Usual length of the first line of a commit. */
const MAX_TITLE_CHARS = 72
const MAX_SLUG_CHARS = 40

/** A name for the branch, from the first words of the task; with a number if the changes were published under it before. */
export function branchOf(task: string, published = ''): string {
  const slug = task
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG_CHARS)
    .replaceAll(/^-+|-+$/g, '')
  const name = `agent/${slug === '' ? 'changes' : slug}`
  if (published === name) return `${name}-2`
  const number = published.startsWith(`${name}-`) ? published.slice(name.length + 1) : ''
  return /^[0-9]{1,4}$/.test(number) ? `${name}-${Number(number) + 1}` : name
}

function Result({
  published,
  onClose,
}: {
  readonly published: Published
  readonly onClose: () => void
}): ReactElement {
  return (
    <Dialog title={texts.done} onClose={onClose}>
      <div className="dialog-text" role="status">
        <PublishedNote published={published} />
      </div>
      <div className="dialog-actions">
        <button type="button" className="primary" onClick={onClose}>
          {texts.close}
        </button>
      </div>
    </Dialog>
  )
}

/** Where the changes were published last. */
export function PublishedNote({
  published: { commit, branch, pullRequest },
}: {
  readonly published: Published
}): ReactElement {
  return (
    <p className="published">
      {texts.pushed(commit.slice(0, 10), branch)}{' '}
      {pullRequest !== null && (
        <OutsideLink href={pullRequest.url} text={texts.linkText}>
          {texts.pullRequestNumber(pullRequest.number)}
        </OutsideLink>
      )}
    </p>
  )
}

/** Pushes changes to a new branch, and opens a pull request. */
export function PublishDialog({
  repo,
  canOpenPullRequest,
  task,
  before,
  summary,
  publish: send,
  onPublished,
  onClose,
  children,
}: {
  readonly repo: string
  readonly canOpenPullRequest: boolean
  /** What the agent was asked to do. */
  readonly task: string
  /** Where the changes were published before, and are not published again. */
  readonly before?: Published | undefined
  /** The description that is suggested. */
  readonly summary: string
  readonly publish: (publication: Publication) => Promise<Published>
  readonly onPublished: (published: Published) => void
  readonly onClose: () => void
  /** Shown below the name of the repository. */
  readonly children?: ReactNode
}): ReactElement {
  const [firstLine = ''] = task.trim().split('\n')
  const [form, setForm] = useState({
    branch: branchOf(firstLine, before?.branch),
    title: firstLine
      .replace(/[\p{C}\s]+/gu, ' ')
      .slice(0, MAX_TITLE_CHARS)
      .trim(),
    body: summary,
    pullRequest: canOpenPullRequest,
  })
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [published, setPublished] = useState<Published>()
  const change = (part: Partial<typeof form>): void => setForm((now) => ({ ...now, ...part }))
  const publish = async (): Promise<void> => {
    setBusy(true)
    try {
      const done = await send(form)
      setPublished(done)
      onPublished(done)
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
      <p className="dim">{texts.repository(repo)}</p>
      {children}
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
      {canOpenPullRequest && (
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
