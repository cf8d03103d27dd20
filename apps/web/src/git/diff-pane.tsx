import { type ReactElement, useEffect, useRef, useState } from 'react'
import { compareBeside, compareInline, type Comparison } from '../editor/compare.ts'
import { linesOf } from '../editor/file-text.ts'
import { displayName } from '../files/display-name.ts'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { type Loaded, messageOf } from '../state/workbench.ts'
import { gitTexts } from '../texts/git.ts'
import { type DiffTexts, readTexts } from './diff-texts.ts'
import { formatRename } from './git-status.ts'

type DiffView = Extract<View, { kind: 'diff' }>

/** Delay after the last change before the diff is reloaded. */
const SETTLE_MS = 300

function useDiffTexts(view: DiffView): Loaded<DiffTexts> {
  const { watch } = useParts()
  const [texts, setTexts] = useState<Loaded<DiffTexts>>({ kind: 'loading' })
  const key = JSON.stringify(view)
  const latest = useRef(view)
  latest.current = view
  useEffect(() => {
    let isGone = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const read = async (): Promise<void> => {
      let next: Loaded<DiffTexts>
      try {
        next = { kind: 'ready', value: await readTexts(latest.current) }
      } catch (caught) {
        next = { kind: 'failed', message: messageOf(caught) }
      }
      if (!isGone) setTexts((old) => (JSON.stringify(old) === JSON.stringify(next) ? old : next))
    }
    void read()
    const stop = watch.subscribe(latest.current.sandbox, () => {
      clearTimeout(timer)
      timer = setTimeout(() => void read(), SETTLE_MS)
    })
    return () => {
      isGone = true
      clearTimeout(timer)
      stop()
    }
  }, [key, watch])
  return texts
}

function comparedText({ of }: DiffView): string {
  if (of === 'unstaged') return gitTexts.diff.unstaged
  return of === 'staged' ? gitTexts.diff.staged : gitTexts.diff.inCommit(of.commit.slice(0, 8))
}

/** A diff, side by side or inline. */
export function DiffPane({ view }: { readonly view: DiffView }): ReactElement {
  const texts = useDiffTexts(view)
  const [isInline, setInline] = useState(false)
  return (
    <div className="file-pane">
      <div className="file-head">
        <span className="file-path">
          {view.repo !== undefined && `${displayName(view.repo)}: `}
          {view.from === undefined ? displayName(view.path) : formatRename(view.from, view.path)},{' '}
          {comparedText(view)}
        </span>
        <button type="button" aria-pressed={isInline} onClick={() => setInline(!isInline)}>
          {isInline ? gitTexts.diff.sideBySide : gitTexts.diff.inline}
        </button>
      </div>
      {texts.kind === 'loading' && <p className="empty">{gitTexts.loading}</p>}
      {texts.kind === 'failed' && <p className="empty">{texts.message}</p>}
      {texts.kind === 'ready' && <DiffBody texts={texts.value} path={view.path} isInline={isInline} />}
    </div>
  )
}

function DiffBody({
  texts,
  path,
  isInline,
}: {
  readonly texts: DiffTexts
  readonly path: string
  readonly isInline: boolean
}): ReactElement {
  switch (texts.kind) {
    case 'same':
      return <p className="empty">{gitTexts.diff.same}</p>
    case 'renamed':
      return <p className="empty">{gitTexts.diff.renamed}</p>
    case 'binary':
      return <p className="empty">{gitTexts.diff.binary}</p>
    case 'words':
      return (
        <>
          {texts.note !== undefined && <p className="words-note">{texts.note}</p>}
          <pre className="editor words">{texts.text}</pre>
        </>
      )
    case 'texts':
      return <Compared before={texts.before} after={texts.after} path={path} isInline={isInline} />
  }
}

function Compared({
  before,
  after,
  path,
  isInline,
}: {
  readonly before: string
  readonly after: string
  readonly path: string
  readonly isInline: boolean
}): ReactElement {
  const repository = useRef<HTMLDivElement>(null)
  const comparison = useRef<Comparison>(undefined)
  const latest = useRef({ before, after })
  latest.current = { before, after }
  useEffect(() => {
    if (repository.current === null) return undefined
    const compare = isInline ? compareInline : compareBeside
    const made = compare(repository.current, {
      path,
      before: linesOf(latest.current.before),
      after: linesOf(latest.current.after),
    })
    comparison.current = made
    return () => made.dispose()
  }, [path, isInline])
  // Updates in place, so that the reader keeps the scroll position.
  useEffect(() => comparison.current?.show(linesOf(before), linesOf(after)), [before, after])
  return <div ref={repository} className="editor compare" />
}
