import { useStore } from '@sandwire/react'
import { type ReactElement, type ReactNode, useEffect, useMemo, useState } from 'react'
import { workspaceUrl } from '../api/workspace.ts'
import type { ViewPosition } from '../editor/view-position.ts'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { fileTexts } from '../texts/files.ts'
import { ConflictView } from './conflict-view.tsx'
import { displayName } from './display-name.ts'
import { formatSize, hexOf, imageType, isDrawing } from './file-kind.ts'
import type { OpenFile } from './open-file.ts'
import { isWithin } from './paths.ts'
import { TextBody } from './text-body.tsx'

type FileView = Extract<View, { kind: 'file' }>

interface PaneProps {
  readonly viewId: string
  readonly view: FileView
  readonly isFocused: boolean
}

/** A file: text, image or hex dump. */
export function FilePane({ viewId, view, isFocused }: PaneProps): ReactElement {
  const { watch, files } = useParts()
  const { sandbox, path } = view
  const file = files.of(viewId, view)
  useEffect(() => {
    // The file may have changed while the pane was not mounted.
    void file.refresh()
    return watch.subscribe(sandbox, (event) => {
      if (
        event.kind === 'overflow' ||
        (event.kind === 'change' && event.paths.some((changed) => isWithin(path, changed)))
      )
        void file.refresh()
    })
  }, [file, watch, sandbox, path])
  const save = (): void => void files.save(viewId)
  const [wantsPicture, setWantsPicture] = useState(false)
  const isPicture = wantsPicture && isDrawing(path)
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
      <FileHead file={file} view={view} onSave={save}>
        {isDrawing(path) && (
          <button type="button" aria-pressed={isPicture} onClick={() => setWantsPicture(!isPicture)}>
            {isPicture ? fileTexts.pane.text : fileTexts.pane.image}
          </button>
        )}
      </FileHead>
      <FileBody file={file} view={view} isFocused={isFocused} isPicture={isPicture} onSave={save} />
    </div>
  )
}

function FileBody({
  file,
  view,
  isFocused,
  isPicture,
  onSave,
}: {
  readonly file: OpenFile
  readonly view: FileView
  readonly isFocused: boolean
  readonly isPicture: boolean
  readonly onSave: () => void
}): ReactElement {
  const state = useStore(file.state)
  const { path, line, column } = view
  /** Position in the text, carried over between editor and conflict view. */
  const position = useMemo((): { current: ViewPosition | undefined } => ({ current: undefined }), [file])
  switch (state.kind) {
    case 'loading':
      return <p className="empty">{fileTexts.loadingFile(displayName(path))}</p>
    case 'failed':
      return <p className="empty">{state.message}</p>
    case 'binary':
      return (
        <>
          <p className="hex-note">
            {state.sizeBytes > state.head.length
              ? fileTexts.pane.binaryHead(formatSize(state.sizeBytes), formatSize(state.head.length))
              : fileTexts.pane.binary(formatSize(state.sizeBytes))}
          </p>
          <pre className="editor hex">{hexOf(state.head)}</pre>
        </>
      )
    case 'large':
      return (
        <div className="empty">
          <p>{fileTexts.pane.large(formatSize(state.sizeBytes))}</p>
          {state.canOpen ? (
            <button type="button" onClick={() => void file.load(true)}>
              {fileTexts.pane.openAnyway}
            </button>
          ) : (
            <p>{fileTexts.pane.tooLarge}</p>
          )}
        </div>
      )
    case 'image':
      return <Picture bytes={state.bytes} type={state.type} path={path} />
    case 'text':
      if (state.theirs !== undefined)
        return (
          <ConflictView
            file={file}
            path={path}
            theirs={state.theirs}
            isFocused={isFocused}
            position={position}
            onSave={onSave}
          />
        )
      return (
        <>
          <TextBody
            file={file}
            state={state}
            path={path}
            line={line}
            column={column}
            isFocused={isFocused}
            isHidden={isPicture}
            position={position}
            onSave={onSave}
          />
          {isPicture && <Drawing file={file} path={path} />}
        </>
      )
  }
}

/** Path, save state and actions of a file. */
function FileHead({
  file,
  view: { sandbox, path },
  onSave,
  children,
}: {
  readonly file: OpenFile
  readonly view: Extract<View, { kind: 'file' }>
  readonly onSave: () => void
  readonly children: ReactNode
}): ReactElement {
  const state = useStore(file.state)
  const isDirty = useStore(file.dirty)
  const isSaving = state.kind === 'text' && state.isSaving
  return (
    <div className="file-head">
      <span className="file-path">{displayName(path)}</span>
      <span className="file-status" role="status">
        {isSaving ? fileTexts.pane.saving : isDirty ? fileTexts.pane.unsaved : ''}
      </span>
      {state.kind === 'text' && state.theirs === undefined && (
        <button
          type="button"
          className={isDirty ? 'primary' : ''}
          title={fileTexts.pane.saveHint}
          disabled={!isDirty || isSaving}
          onClick={onSave}
        >
          {fileTexts.pane.save}
        </button>
      )}
      {state.kind === 'text' && state.theirs === undefined && children}
      <a
        className="button"
        href={workspaceUrl(sandbox, 'file', { path })}
        download={displayName(path.split('/').pop() ?? path)}
      >
        {fileTexts.pane.download}
      </a>
    </div>
  )
}

/** An image, or a message that it cannot be decoded. */
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
  /** URL that failed to load; a new version of the file has another URL. */
  const [broken, setBroken] = useState<string>()
  useEffect(() => {
    // Opened alone, a `data:` URL has an opaque origin; a script in an SVG at a `blob:` URL would have the page's.
    const reader = new FileReader()
    reader.addEventListener('load', () => {
      if (typeof reader.result === 'string') setUrl(reader.result)
    })
    reader.readAsDataURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }))
    return () => reader.abort()
  }, [bytes, type])
  if (url !== undefined && url === broken) return <p className="empty">{fileTexts.pane.brokenImage}</p>
  return (
    <div className="picture">
      {url !== undefined && (
        <img key={url} src={url} alt={displayName(path)} onError={() => setBroken(url)} />
      )}
    </div>
  )
}

/** Previews the SVG in the editor, saved or not. */
function Drawing({ file, path }: { readonly file: OpenFile; readonly path: string }): ReactElement {
  const { text } = file
  const bytes = useMemo(() => new TextEncoder().encode(text.toString()), [text])
  return <Picture bytes={bytes} type={imageType(path) ?? ''} path={path} />
}
