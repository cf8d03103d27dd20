import { type ReactElement, useEffect, useRef } from 'react'
import { Editor } from '../editor/editor.ts'
import type { FileState, OpenFile } from './open-file.ts'

/** A text in its editor. */
export function TextBody({
  file,
  state,
  path,
  line,
  column,
  isFocused,
  isHidden,
  onSave,
}: {
  readonly file: OpenFile
  readonly state: Extract<FileState, { is: 'text' }>
  readonly path: string
  readonly line: number | undefined
  readonly column: number | undefined
  readonly isFocused: boolean
  /** Something else is shown in its place; it stays as it is. */
  readonly isHidden: boolean
  readonly onSave: () => void
}): ReactElement {
  const place = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor>(undefined)
  const save = useRef(onSave)
  save.current = onSave
  const latestPath = useRef(path)
  latestPath.current = path
  useEffect(() => {
    if (place.current === null) return undefined
    const made = new Editor(place.current, {
      text: file.text,
      path: latestPath.current,
      onChange: (text) => file.edited(text),
      onSave: () => save.current(),
    })
    editor.current = made
    return () => made.dispose()
  }, [file])
  // A file that was moved keeps its editor, with the place in it and all that can be undone.
  useEffect(() => editor.current?.setPath(path), [path])
  // A version that was taken over from the disk.
  useEffect(() => {
    if (file.text !== editor.current?.text) editor.current?.setText(file.text)
  }, [file, state])
  useEffect(() => {
    if (line !== undefined) editor.current?.goTo(line, column)
  }, [line, column])
  useEffect(() => {
    if (isFocused) editor.current?.focus()
  }, [isFocused])
  return <div ref={place} className="editor" hidden={isHidden} />
}
