import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useMemo, useState } from 'react'
import type { Place } from '../editor/place.ts'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { ConflictView } from './conflict-view.tsx'
import { FileHead } from './file-head.tsx'
import { isDrawing, sizeText } from './file-kind.ts'
import { hexOf } from './hex.ts'
import type { OpenFile } from './open-file.ts'
import { isWithin } from './paths.ts'
import { Drawing, Picture } from './picture.tsx'
import { shownName } from './shown-name.ts'
import { TextBody } from './text-body.tsx'
import { fileTexts } from '../texts/files.ts'

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
  /** Where the person was in the text, for whatever shows it next. */
  const place = useMemo((): { current: Place | undefined } => ({ current: undefined }), [file])
  switch (state.is) {
    case 'loading':
      return <p className="empty">{fileTexts.loadingFile(shownName(path))}</p>
    case 'failed':
      return <p className="empty">{state.message}</p>
    case 'binary':
      return (
        <>
          <p className="hex-note">
            {state.sizeBytes > state.head.length
              ? fileTexts.pane.binaryHead(sizeText(state.sizeBytes), sizeText(state.head.length))
              : fileTexts.pane.binary(sizeText(state.sizeBytes))}
          </p>
          <pre className="editor hex">{hexOf(state.head)}</pre>
        </>
      )
    case 'large':
      return (
        <div className="empty">
          <p>{fileTexts.pane.large(sizeText(state.sizeBytes))}</p>
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
            place={place}
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
            place={place}
            onSave={onSave}
          />
          {isPicture && <Drawing file={file} path={path} />}
        </>
      )
  }
}
