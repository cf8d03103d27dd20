import {
  type CompositionEventHandler,
  type ReactElement,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
} from 'react'
import { Editor } from '../editor/editor.ts'
import type { ViewPosition } from '../editor/view-position.ts'
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
  position,
  onSave,
}: {
  readonly file: OpenFile
  readonly state: TextState
  readonly path: string
  readonly line: number | undefined
  readonly column: number | undefined
  readonly isFocused: boolean
  /** Another view is shown instead; the editor keeps its state. */
  readonly isHidden: boolean
  /** Position to restore when the editor mounts; updated when it unmounts. */
  readonly position: RefObject<ViewPosition | undefined>
  readonly onSave: () => void
}): ReactElement {
  const parent = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor>(undefined)
  /** The editor replaces a conflict view in which the user was working. */
  const isContinuing = useRef(false)
  const composing = useComposing(file)
  const save = useRef(onSave)
  save.current = onSave
  const latestPath = useRef(path)
  latestPath.current = path
  // In the same commit as the removal of the focused view, so that no key press is lost.
  useLayoutEffect(() => {
    if (parent.current === null) return undefined
    isContinuing.current = position.current !== undefined
    const created = new Editor(parent.current, {
      text: file.text,
      path: latestPath.current,
      position: position.current,
      onChange: (text) => file.edited(text),
      onSave: () => save.current(),
    })
    editor.current = created
    return () => {
      position.current = created.position
      created.dispose()
    }
  }, [file, position])
  // A moved file keeps its editor with cursor and undo history.
  useEffect(() => editor.current?.setPath(path), [path])
  // A version was taken over from disk.
  useEffect(() => {
    editor.current?.setText(file.text)
  }, [file, state])
  useEffect(() => {
    if (line !== undefined && !isContinuing.current) editor.current?.goTo(line, column)
  }, [line, column])
  useEffect(() => {
    // When a conflict ends by itself, the focus stays wherever the user is.
    if (isFocused && (!isContinuing.current || hasLostFocus())) editor.current?.focus()
  }, [isFocused])
  useEffect(() => {
    isContinuing.current = false
  }, [])
  return <div ref={parent} className="editor" hidden={isHidden} {...composing} />
}

/** Handlers that tell a file when an input method composes a word. */
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
    // CodeMirror handles the end right after this event, and the next composition may start with it.
    onCompositionEnd: () => {
      ending.current = setTimeout(() => file.compose(false))
    },
  }
}
