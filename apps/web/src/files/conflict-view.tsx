import { type ReactElement, type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Conflict } from '../editor/conflict.ts'
import type { Place } from '../editor/place.ts'
import { ConflictBanner } from './conflict-banner.tsx'
import type { Theirs } from './file-state.ts'
import { hasLostKeyboard } from './keyboard.ts'
import type { OpenFile } from './open-file.ts'
import { useComposing } from './use-composing.ts'

/** The file on the disk and the text in the editor, until the person has decided. */
export function ConflictView({
  file,
  path,
  theirs,
  isFocused,
  place,
  onSave,
}: {
  readonly file: OpenFile
  readonly path: string
  readonly theirs: Theirs
  readonly isFocused: boolean
  /** Where the person was in their text when it was shown otherwise, and then where they are. */
  readonly place: RefObject<Place | undefined>
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
  // In one go with the removal of what had the keyboard, so that no key finds nobody.
  useLayoutEffect(() => {
    if (parent.current === null) return undefined
    const { current: start } = first
    const made = new Conflict(parent.current, {
      path: start.path,
      theirs: start.onDisk,
      mine: file.text,
      place: place.current,
      onChange: (text) => {
        file.edited(text)
        setMine(text)
      },
      onSave: () => save.current(),
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
