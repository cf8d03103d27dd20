import { type ReactElement, useState } from 'react'
import { Confirm } from '../shell/dialog.tsx'
import { useSandboxName } from '../shell/view-title.ts'
import { useParts } from '../state/context.ts'
import type { FileQuestion } from './file-actions.tsx'
import { firstNames } from './first-names.ts'
import { ROOT } from './paths.ts'
import { shownName } from './shown-name.ts'
import { fileTexts } from '../texts/files.ts'

/** Files that are named before an upload begins. */
const MAX_SHOWN = 8

/** Asks before files are uploaded: which, where to, and whether over what is there. */
export function UploadDialog({
  sandbox,
  question,
  onDone,
  refresh,
}: {
  readonly sandbox: string
  readonly question: Extract<FileQuestion, { ask: 'upload' }>
  readonly onDone: () => void
  readonly refresh: (...folders: readonly string[]) => Promise<void>
}): ReactElement {
  const { workbench, uploads } = useParts()
  const name = useSandboxName(sandbox)
  const [replaces, setReplaces] = useState(false)
  const { files, folder } = question
  const upload = async (): Promise<void> => {
    onDone()
    const { kind, text } = await uploads.start({ sandbox, folder, files, replaces })
    workbench.tell(kind, text)
    await refresh(folder)
  }
  return (
    <Confirm
      title={
        files.length === 1
          ? fileTexts.uploads.one(shownName(files[0]?.path ?? ''))
          : fileTexts.uploads.several(files.length)
      }
      yes={fileTexts.uploads.upload}
      onAnswer={(isYes) => {
        if (isYes) void upload()
        else onDone()
      }}
    >
      <p>{fileTexts.uploads.to(folder === ROOT ? fileTexts.uploads.workspaceOf(name) : shownName(folder))}</p>
      {files.length > 1 && (
        <pre className="preview">
          {firstNames(
            files.map(({ path }) => path),
            MAX_SHOWN,
          )}
        </pre>
      )}
      <label className="check">
        <input type="checkbox" checked={replaces} onChange={(event) => setReplaces(event.target.checked)} />
        {fileTexts.uploads.replace}
      </label>
    </Confirm>
  )
}
