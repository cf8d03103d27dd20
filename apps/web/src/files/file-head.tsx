import { useStore } from '@sandwire/react'
import type { ReactElement, ReactNode } from 'react'
import { workspaceUrl } from '../api/workspace.ts'
import type { View } from '../layout/layout.ts'
import type { OpenFile } from './open-file.ts'
import { shownName } from './shown-name.ts'
import { fileTexts } from '../texts/files.ts'

/** Where a file is, whether it is saved, and what can be done with it. */
export function FileHead({
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
  const isSaving = state.is === 'text' && state.isSaving
  return (
    <div className="file-head">
      <span className="file-path">{shownName(path)}</span>
      <span className="file-status" role="status">
        {isSaving ? fileTexts.pane.saving : isDirty ? fileTexts.pane.unsaved : ''}
      </span>
      {state.is === 'text' && state.theirs === undefined && (
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
      {state.is === 'text' && state.theirs === undefined && children}
      <a
        className="button"
        href={workspaceUrl(sandbox, 'file', { path })}
        download={shownName(path.split('/').pop() ?? path)}
      >
        {fileTexts.pane.download}
      </a>
    </div>
  )
}
