import { useStore } from '@sandwire/react'
import { type ReactElement, type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Conflict } from '../editor/conflict.ts'
import type { FileText } from '../editor/file-text.ts'
import type { ViewPosition } from '../editor/view-position.ts'
import { hasLostFocus } from '../shell/focus.ts'
import { useParts } from '../state/context.ts'
import { fileTexts } from '../texts/files.ts'
import { conflictMessage } from './conflict-message.ts'
import { displayName } from './display-name.ts'
import type { OpenFile, Theirs } from './open-file.ts'
import { useComposing } from './text-body.tsx'

/** The file on disk beside the text in the editor, until the user chooses. */
export function ConflictView({
  file,
  path,
  theirs,
  isFocused,
  position,
  onSave,
}: {
  readonly file: OpenFile
  readonly path: string
  readonly theirs: Theirs
  readonly isFocused: boolean
  /** Position to restore when the view mounts; updated when it unmounts. */
  readonly position: RefObject<ViewPosition | undefined>
  readonly onSave: () => void
}): ReactElement {
  const [mine, setMine] = useState(file.text)
  const parent = useRef<HTMLDivElement>(null)
  const conflict = useRef<Conflict>(undefined)
  const composing = useComposing(file)
  const save = useRef(onSave)
  save.current = onSave
  const onDisk = typeof theirs === 'string' ? undefined : theirs.text
  const first = useRef({ path, onDisk, isFocused })
  // In the same commit as the removal of the focused editor, so that no key press is lost.
  useLayoutEffect(() => {
    if (parent.current === null) return undefined
    const { current: start } = first
    const view = new Conflict(parent.current, {
      path: start.path,
      theirs: start.onDisk,
      mine: file.text,
      position: position.current,
      onChange: (text) => {
        file.edited(text)
        setMine(text)
      },
      onSave: () => save.current(),
    })
    if (start.isFocused && hasLostFocus()) view.focus()
    conflict.current = view
    return () => {
      position.current = view.position
      view.dispose()
    }
  }, [file, position])
  useEffect(() => conflict.current?.showTheirs(onDisk), [onDisk])
  const wasFocused = useRef(isFocused)
  useEffect(() => {
    if (isFocused && !wasFocused.current) conflict.current?.focus()
    wasFocused.current = isFocused
  }, [isFocused])
  return (
    <>
      <ConflictBanner
        file={file}
        path={path}
        theirs={theirs}
        mine={mine}
        onNext={() => conflict.current?.goToNextChange()}
      />
      <div ref={parent} className="editor compare" {...composing} />
    </>
  )
}

const { conflict: texts } = fileTexts

/** Describes a conflict and offers the ways out. The first button loses nothing: saving moves the focus to it. */
function ConflictBanner({
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
  /** Moves to the next change. */
  readonly onNext: () => void
}): ReactElement {
  const { workbench } = useParts()
  const isDirty = useStore(file.dirty)
  const saveAttempts = useStore(file.saveAttempts)
  const initialAttempts = useRef(saveAttempts)
  const triedToSave = saveAttempts !== initialAttempts.current
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (triedToSave) element.current?.querySelector('button')?.focus()
  }, [triedToSave, saveAttempts])
  const keep = (): void =>
    void workbench.attempt(fileTexts.pane.cannotSave(displayName(path)), () => file.keepMine())
  const copy = (): void =>
    void workbench.attempt(texts.cannotCopy, async () => {
      await navigator.clipboard.writeText(mine.toString())
      workbench.notify('info', texts.copied)
    })
  const isText = typeof theirs === 'object' && theirs.text !== undefined
  return (
    <div ref={element} className="banner conflict" role="alert">
      <span>{conflictMessage({ theirs, mine, isDirty, triedToSave })}</span>
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
