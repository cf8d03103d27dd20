import { useStore } from '@sandwire/react'
import { type FormEvent, type ReactElement, useMemo, useState } from 'react'
import { type Author, commit, type GitRepository, lacksAuthor } from '../api/git.ts'
import { useParts } from '../state/context.ts'
import { formatFailure } from '../state/workbench.ts'
import { gitTexts } from '../texts/git.ts'
import { isAuthor, storeAuthor, AccountTexts, readAuthor } from './account-storage.ts'

const EMPTY_AUTHOR: Author = { name: '', email: '' }

const DRAFTS_KEY = 'sandwire.commit-messages'

/** A commit message that survives in this tab until it is committed. */
function useDraft(
  { sandbox, repo }: GitRepository,
  account: string,
): readonly [string, (text: string) => void] {
  const drafts = useMemo(() => new AccountTexts(sessionStorage, DRAFTS_KEY, account), [account])
  const name = `${sandbox} ${repo}`
  const [message, setMessage] = useState(() => drafts.read(name) ?? '')
  const change = (text: string): void => {
    setMessage(text)
    drafts.store(name, text)
  }
  return [message, change]
}

/** Message and commit button. Asks for an author when git has none configured. */
export function CommitBox({
  repository,
  canCommit,
  onDone,
}: {
  readonly repository: GitRepository
  readonly canCommit: boolean
  readonly onDone: () => Promise<void>
}): ReactElement {
  const { workbench } = useParts()
  const user = useStore(workbench.user)
  const account = user.kind === 'ready' ? (user.value?.account ?? '') : ''
  const [message, setMessage] = useDraft(repository, account)
  const [author, setAuthor] = useState<Author>()
  const [isBusy, setBusy] = useState(false)

  /** Commits as this author, or as git's configured one. */
  const make = async (as: Author | undefined): Promise<void> => {
    try {
      await commit(repository, message, as)
      if (as !== undefined) storeAuthor(localStorage, account, as)
      setMessage('')
    } catch (caught) {
      if (as !== undefined || !lacksAuthor(caught)) {
        workbench.notify('error', formatFailure(gitTexts.commit.cannotCommit, caught))
        return
      }
      const stored = readAuthor(localStorage, account)
      setAuthor(stored ?? EMPTY_AUTHOR)
      if (stored !== undefined) await make(stored)
    }
  }
  const submit = async (): Promise<void> => {
    setBusy(true)
    await make(author)
    await onDone()
    setBusy(false)
  }
  const isReady = canCommit && message.trim() !== '' && !isBusy && (author === undefined || isAuthor(author))
  return (
    <form
      className="commit-box"
      onSubmit={(event: FormEvent) => {
        event.preventDefault()
        if (isReady) void submit()
      }}
    >
      <textarea
        aria-label={gitTexts.commit.message}
        placeholder={gitTexts.commit.placeholder}
        rows={3}
        value={message}
        readOnly={isBusy}
        onChange={(event) => setMessage(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && isReady) void submit()
        }}
      />
      {author !== undefined && <AuthorFields author={author} onChange={setAuthor} />}
      <button type="submit" className="primary" disabled={!isReady}>
        {isBusy ? gitTexts.commit.committing : gitTexts.commit.commit}
      </button>
    </form>
  )
}

function AuthorFields({
  author,
  onChange,
}: {
  readonly author: Author
  readonly onChange: (author: Author) => void
}): ReactElement {
  return (
    <fieldset className="author">
      <legend>{gitTexts.commit.author}</legend>
      <input
        aria-label={gitTexts.commit.yourName}
        placeholder={gitTexts.commit.name}
        autoComplete="name"
        value={author.name}
        onChange={(event) => onChange({ ...author, name: event.target.value })}
      />
      <input
        aria-label={gitTexts.commit.yourEmail}
        placeholder={gitTexts.commit.email}
        type="email"
        autoComplete="email"
        value={author.email}
        onChange={(event) => onChange({ ...author, email: event.target.value })}
      />
    </fieldset>
  )
}
