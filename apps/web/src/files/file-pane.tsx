import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useMemo, useRef, useState } from 'react'
import { workspaceUrl } from '../api/workspace.ts'
import { Editor } from '../editor/editor.ts'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { messageOf } from '../state/workbench.ts'
import { ConflictView } from './conflict-view.tsx'
import { sizeText } from './file-kind.ts'
import { accessTo, type FileState, OpenFile } from './open-file.ts'
import { shownName } from './shown-name.ts'

type FileView = Extract<View, { kind: 'file' }>

/** A file, in the way that suits what is in it. */
export function FilePane({
  viewId,
  view,
  isFocused,
}: {
  readonly viewId: string
  readonly view: FileView
  readonly isFocused: boolean
}): ReactElement {
  const { watch, dirty } = useParts()
  const { sandbox, path } = view
  const file = useMemo(() => new OpenFile(accessTo(sandbox, path), path), [sandbox, path])
  const state = useStore(file.state)
  useEffect(() => {
    void file.load()
    const stop = watch.subscribe(sandbox, (event) => {
      if (event.kind === 'overflow' || (event.kind === 'change' && event.paths.includes(path)))
        void file.refresh()
    })
    return () => {
      stop()
      dirty.forget(viewId)
    }
  }, [file, watch, dirty, sandbox, path, viewId])
  return (
    <div className="file-pane">
      <div className="file-head">
        <span className="file-path">{shownName(path)}</span>
        <a
          className="button"
          href={workspaceUrl(sandbox, 'file', { path })}
          download={shownName(path.split('/').pop() ?? path)}
        >
          Download
        </a>
      </div>
      <FileBody file={file} state={state} view={view} viewId={viewId} isFocused={isFocused} />
    </div>
  )
}

function FileBody({
  file,
  state,
  view,
  viewId,
  isFocused,
}: {
  readonly file: OpenFile
  readonly state: FileState
  readonly view: FileView
  readonly viewId: string
  readonly isFocused: boolean
}): ReactElement {
  switch (state.is) {
    case 'loading':
      return <p className="empty">Loading {shownName(view.path)}…</p>
    case 'failed':
      return <p className="empty">{state.message}</p>
    case 'binary':
      return (
        <p className="empty">
          {sizeText(state.sizeBytes)} that are not text. Download the file to look at it.
        </p>
      )
    case 'large':
      return (
        <div className="empty">
          <p>This file has {sizeText(state.sizeBytes)}.</p>
          {state.canOpen ? (
            <button type="button" onClick={() => void file.load(true)}>
              Open it anyway
            </button>
          ) : (
            <p>That is more than the editor opens. Download it instead.</p>
          )}
        </div>
      )
    case 'image':
      return <Picture bytes={state.bytes} type={state.type} path={view.path} />
    case 'text':
      return state.theirs === undefined ? (
        <TextBody file={file} state={state} view={view} viewId={viewId} isFocused={isFocused} />
      ) : (
        <ConflictView file={file} path={view.path} theirs={state.theirs} />
      )
  }
}

function Picture({
  bytes,
  type,
  path,
}: {
  readonly bytes: Uint8Array
  readonly type: string
  readonly path: string
}): ReactElement {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [bytes, type])
  return <div className="picture">{url !== undefined && <img src={url} alt={shownName(path)} />}</div>
}

function TextBody({
  file,
  state,
  view,
  viewId,
  isFocused,
}: {
  readonly file: OpenFile
  readonly state: Extract<FileState, { is: 'text' }>
  readonly view: FileView
  readonly viewId: string
  readonly isFocused: boolean
}): ReactElement {
  const { workbench, dirty } = useParts()
  const place = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor>(undefined)
  const [isDirty, setDirty] = useState(file.isDirty)
  const { path, line } = view

  useEffect(() => {
    if (place.current === null) return undefined
    const save = async (): Promise<void> => {
      try {
        await file.save()
      } catch (caught) {
        workbench.tell('error', `Cannot save ${path}: ${messageOf(caught)}`)
      }
      setDirty(file.isDirty)
      dirty.set(viewId, file.isDirty)
    }
    const made = new Editor(place.current, {
      text: file.text,
      path,
      onChange: (text) => {
        file.edited(text)
        setDirty(file.isDirty)
        dirty.set(viewId, file.isDirty)
      },
      onSave: () => void save(),
    })
    editor.current = made
    return () => made.dispose()
  }, [file, path, viewId, workbench, dirty])
  // A version that was taken over from the disk.
  useEffect(() => {
    if (file.text !== editor.current?.text) editor.current?.setText(file.text)
    setDirty(file.isDirty)
    dirty.set(viewId, file.isDirty)
  }, [file, state, viewId, dirty])
  useEffect(() => {
    if (line !== undefined) editor.current?.goTo(line)
  }, [line])
  useEffect(() => {
    if (isFocused) editor.current?.focus()
  }, [isFocused])

  return (
    <>
      <div className="file-status" role="status">
        {state.isSaving ? 'Saving…' : isDirty ? 'Not saved. Ctrl+S saves it.' : ''}
      </div>
      <div ref={place} className="editor" />
    </>
  )
}
