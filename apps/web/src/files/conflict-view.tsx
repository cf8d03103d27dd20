import { useStore } from '@sandwire/react'
import { type ReactElement, type RefObject, useEffect, useLayoutEffect, useRef } from 'react'
import { Conflict } from '../editor/conflict.ts'
import type { Place } from '../editor/place.ts'
import { useParts } from '../state/context.ts'
import { messageOf } from '../state/workbench.ts'
import { hasLostKeyboard } from './keyboard.ts'
import type { OpenFile, Theirs } from './open-file.ts'

function explain(theirs: Theirs, isDirty: boolean): string {
  if (theirs === 'gone')
    return isDirty
      ? 'The file was removed or moved while you changed it. Nothing of yours is lost.'
      : 'The file was removed or moved. This is the text it had.'
  if (theirs.text === undefined)
    return 'The file changed while you changed it too, and is no longer text. Right: yours, which you can still edit.'
  return 'The file changed while you changed it too. Left: on disk. Right: yours, which you can still edit.'
}

/** The file on the disk and the text in the editor, until the person has decided. */
export function ConflictView({
  file,
  path,
  theirs,
  isFocused,
  place,
}: {
  readonly file: OpenFile
  readonly path: string
  readonly theirs: Theirs
  readonly isFocused: boolean
  /** Where the person was in their text when it was shown otherwise, and then where they are. */
  readonly place: RefObject<Place | undefined>
}): ReactElement {
  const { workbench } = useParts()
  const isDirty = useStore(file.dirty)
  const parent = useRef<HTMLDivElement>(null)
  const conflict = useRef<Conflict>(undefined)
  const onDisk = theirs === 'gone' ? undefined : theirs.text
  const first = useRef({ path, onDisk, isFocused })
  // In one go with the removal of what had the keyboard, so that no key finds nobody.
  useLayoutEffect(() => {
    if (parent.current === null) return undefined
    const { current: start } = first
    const made = new Conflict(parent.current, {
      path: start.path,
      theirs: start.onDisk,
      mine: file.text,
      place: place.current,
      onChange: (text) => file.edited(text),
    })
    if (start.isFocused && hasLostKeyboard()) made.focus()
    conflict.current = made
    return () => {
      place.current = made.place
      made.dispose()
    }
  }, [file, place])
  useEffect(() => conflict.current?.showTheirs(onDisk), [onDisk])
  const wasFocused = useRef(isFocused)
  useEffect(() => {
    if (isFocused && !wasFocused.current) conflict.current?.focus()
    wasFocused.current = isFocused
  }, [isFocused])
  const keep = async (): Promise<void> => {
    try {
      await file.keepMine()
    } catch (caught) {
      workbench.tell('error', `Cannot save ${path}: ${messageOf(caught)}`)
    }
  }
  return (
    <>
      <div className="banner conflict" role="alert">
        <span>{explain(theirs, isDirty)}</span>
        {onDisk !== undefined && (
          <button type="button" onClick={() => conflict.current?.goToNextChange()}>
            Next change
          </button>
        )}
        <button type="button" className="primary" onClick={() => void keep()}>
          {theirs === 'gone' ? 'Write it again' : 'Save the right side'}
        </button>
        <button type="button" className="danger" onClick={() => void file.takeTheirs()}>
          {theirs === 'gone' ? 'Let it go' : 'Drop mine'}
        </button>
      </div>
      <div ref={parent} className="editor compare" />
    </>
  )
}
