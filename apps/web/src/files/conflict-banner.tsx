import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useRef } from 'react'
import type { FileText } from '../editor/file-text.ts'
import { useParts } from '../state/context.ts'
import { conflictWords } from './conflict-words.ts'
import type { Theirs } from './file-state.ts'
import type { OpenFile } from './open-file.ts'
import { shownName } from './shown-name.ts'
import { fileTexts } from '../texts/files.ts'

const { conflict: texts } = fileTexts

/** What became of a file while it was changed, and the ways out. The first of them loses nothing: whoever saves is led to it. */
export function ConflictBanner({
  file,
  path,
  theirs,
  mine,
  onNext,
}: {
  readonly file: OpenFile
  readonly path: string
  readonly theirs: Theirs
  readonly mine: FileText
  /** Goes to the next change. */
  readonly onNext: () => void
}): ReactElement {
  const { workbench } = useParts()
  const isDirty = useStore(file.dirty)
  const asked = useStore(file.asked)
  const askedBefore = useRef(asked)
  const isAsked = asked !== askedBefore.current
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isAsked) element.current?.querySelector('button')?.focus()
  }, [isAsked, asked])
  const keep = (): void =>
    void workbench.attempt(fileTexts.pane.cannotSave(shownName(path)), () => file.keepMine())
  const copy = (): void =>
    void workbench.attempt(texts.cannotCopy, async () => {
      await navigator.clipboard.writeText(mine.toString())
      workbench.tell('info', texts.copied)
    })
  const isText = typeof theirs === 'object' && theirs.text !== undefined
  return (
    <div ref={element} className="banner conflict" role="alert">
      <span>{conflictWords({ theirs, mine, isDirty, isAsked })}</span>
      {isText && (
        <button type="button" onClick={onNext}>
          {texts.nextChange}
        </button>
      )}
      {!isText && theirs !== 'gone' && (
        <button type="button" onClick={copy}>
          {texts.copyMine}
        </button>
      )}
      {(theirs === 'gone' || typeof theirs === 'object') && (
        <button type="button" className="primary" onClick={keep}>
          {theirs === 'gone' ? texts.recreate : texts.keepMine}
        </button>
      )}
      <button type="button" className="danger" onClick={() => void file.takeTheirs()}>
        {typeof theirs === 'string' ? texts.discard : texts.useDisk}
      </button>
    </div>
  )
}
