import {
  type CompositionEventHandler,
  type ReactElement,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
} from 'react'
import { Editor } from '../editor/editor.ts'
import type { Place } from '../editor/view-position.ts'
import { hasLostFocus } from '../shell/focus.ts'
import type { OpenFile, TextState } from './open-file.ts'

/** A text in its editor. */
export function TextBody({
  file,
  state,
  path,
  line,
  column,
  isFocused,
  isHidden,
  place,
  onSave,
}: {
  readonly file: OpenFile
  readonly state: TextState
  readonly path: string
  readonly line: number | undefined
  readonly column: number | undefined
  readonly isFocused: boolean
  /** Something else is shown in its place; it stays as it is. */
  readonly isHidden: boolean
  /** Where the person was in the text when it was shown otherwise, and then where they are. */
  readonly place: RefObject<Place | undefined>
  readonly onSave: () => void
}): ReactElement {
  const parent = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor>(undefined)
  /** It was shown otherwise until just now, and the person is in the middle of it. */
  const goesOn = useRef(false)
  const composing = useComposing(file)
  const save = useRef(onSave)
  save.current = onSave
  const latestPath = useRef(path)
  latestPath.current = path
  // In one go with the removal of what had the keyboard, so that no key finds nobody.
  useLayoutEffect(() => {
    if (parent.current === null) return undefined
    goesOn.current = place.current !== undefined
    const made = new Editor(parent.current, {
      text: file.text,
      path: latestPath.current,
      place: place.current,
      onChange: (text) => file.edited(text),
      onSave: () => save.current(),
    })
    editor.current = made
    return () => {
      place.current = made.place
      made.dispose()
    }
  }, [file, place])
  // A file that was moved keeps its editor, with the place in it and all that can be undone.
  useEffect(() => editor.current?.setPath(path), [path])
  // A version that was taken over from the disk.
  useEffect(() => {
    editor.current?.setText(file.text)
  }, [file, state])
  useEffect(() => {
    if (line !== undefined && !goesOn.current) editor.current?.goTo(line, column)
  }, [line, column])
  useEffect(() => {
    // Whoever works elsewhere on the page while a conflict ends by itself keeps the keyboard there.
    if (isFocused && (!goesOn.current || hasLostFocus())) editor.current?.focus()
  }, [isFocused])
  useEffect(() => {
    goesOn.current = false
  }, [])
  return <div ref={parent} className="editor" hidden={isHidden} {...composing} />
}

/** Tells a file when an input method puts a word together in an element that has these handlers. */
export function useComposing(file: OpenFile): {
  readonly onCompositionStart: CompositionEventHandler
  readonly onCompositionEnd: CompositionEventHandler
} {
  const ending = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(
    () => () => {
      clearTimeout(ending.current)
      file.compose(false)
    },
    [file],
  )
  return {
    onCompositionStart: () => {
      clearTimeout(ending.current)
      file.compose(true)
    },
    // The editor learns of the end of the word right after this event, and the next word may begin with it.
    onCompositionEnd: () => {
      ending.current = setTimeout(() => file.compose(false))
    },
  }
}
