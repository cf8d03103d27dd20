import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect } from 'react'
import { workspaceUrl } from '../api/workspace.ts'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { ConflictView } from './conflict-view.tsx'
import { sizeText } from './file-kind.ts'
import type { OpenFile } from './open-file.ts'
import { Picture } from './picture.tsx'
import { shownName } from './shown-name.ts'
import { TextBody } from './text-body.tsx'

type FileView = Extract<View, { kind: 'file' }>

interface PaneProps {
  readonly viewId: string
  readonly view: FileView
  readonly isFocused: boolean
}

/** A file, in the way that suits what is in it. */
export function FilePane({ viewId, view, isFocused }: PaneProps): ReactElement {
  const { watch, files } = useParts()
  const { sandbox, path } = view
  const file = files.of(viewId, view)
  useEffect(() => {
    // It may have been drawn before, and have changed since.
    void file.refresh()
    return watch.subscribe(sandbox, (event) => {
      if (event.kind === 'overflow' || (event.kind === 'change' && event.paths.includes(path)))
        void file.refresh()
    })
  }, [file, watch, sandbox, path])
  const save = (): void => void files.save(viewId)
  return (
    <div
      className="file-pane"
      onKeyDown={(event) => {
        const isSave = event.key === 's' && (event.ctrlKey || event.metaKey) && !event.shiftKey
        if (!isSave || event.defaultPrevented) return
        event.preventDefault()
        save()
      }}
    >
      <FileHead file={file} view={view} onSave={save} />
      <FileBody file={file} view={view} isFocused={isFocused} onSave={save} />
    </div>
  )
}

function FileHead({
  file,
  view: { sandbox, path },
  onSave,
}: {
  readonly file: OpenFile
  readonly view: FileView
  readonly onSave: () => void
}): ReactElement {
  const state = useStore(file.state)
  const isDirty = useStore(file.dirty)
  const isSaving = state.is === 'text' && state.isSaving
  return (
    <div className="file-head">
      <span className="file-path">{shownName(path)}</span>
      <span className="file-status" role="status">
        {isSaving ? 'Saving…' : isDirty ? 'Not saved' : ''}
      </span>
      {state.is === 'text' && state.theirs === undefined && (
        <button
          type="button"
          className={isDirty ? 'primary' : ''}
          title="Save (Ctrl+S)"
          disabled={!isDirty || isSaving}
          onClick={onSave}
        >
          Save
        </button>
      )}
      <a
        className="button"
        href={workspaceUrl(sandbox, 'file', { path })}
        download={shownName(path.split('/').pop() ?? path)}
      >
        Download
      </a>
    </div>
  )
}

function FileBody({
  file,
  view,
  isFocused,
  onSave,
}: {
  readonly file: OpenFile
  readonly view: FileView
  readonly isFocused: boolean
  readonly onSave: () => void
}): ReactElement {
  const state = useStore(file.state)
  const { path, line, column } = view
  switch (state.is) {
    case 'loading':
      return <p className="empty">Loading {shownName(path)}…</p>
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
      return <Picture bytes={state.bytes} type={state.type} path={path} />
    case 'text':
      return state.theirs === undefined ? (
        <TextBody {...{ file, state, path, line, column, isFocused, onSave }} />
      ) : (
        <ConflictView file={file} path={path} theirs={state.theirs} />
      )
  }
}
