import { printable } from '@sandwire/react'
import { type ReactElement, useEffect, useRef, useState } from 'react'
import { ApiError } from '../api/request.ts'
import { makeFolder, removeFile, renameFile, writeFile } from '../api/workspace.ts'
import { reveal } from '../layout/layout.ts'
import { Confirm, FormDialog } from '../shell/dialog.tsx'
import { baseName, useSandboxName } from '../shell/titles.ts'
import { useParts } from '../state/context.ts'
import { formatFailure } from '../state/workbench.ts'
import { fileTexts } from '../texts/files.ts'
import { displayName, formatPaths } from './display-name.ts'
import type { Dropped } from './drops.tsx'
import type { FileTree } from './file-tree.ts'
import { cleanPath, findNameProblem, joinPath, parentOf, ROOT } from './paths.ts'

/** A file operation that needs user input. */
export type FileQuestion =
  | { readonly ask: 'newFile' | 'newFolder'; readonly folder: string }
  | { readonly ask: 'rename'; readonly path: string }
  | { readonly ask: 'moveInto'; readonly path: string; readonly folder: string }
  | { readonly ask: 'remove'; readonly path: string; readonly isFolder: boolean }
  | { readonly ask: 'upload'; readonly folder: string; readonly files: readonly Dropped[] }

interface ActionProps {
  readonly sandbox: string
  readonly tree: FileTree
  readonly question: FileQuestion
  /** Called with the new path after a move. */
  readonly onMoved: (path: string) => void
  readonly onDone: () => void
}

/** Creates an empty file; fails if the path exists. */
async function makeFile(sandbox: string, path: string): Promise<void> {
  try {
    await writeFile(sandbox, path, '', 'new')
  } catch (caught) {
    const isThere = caught instanceof ApiError && caught.code === 'file_changed'
    throw isThere ? new Error(fileTexts.alreadyExists, { cause: caught }) : caught
  }
}

/** Shows the dialog of a file operation, performs it and refreshes the tree. */
export function FileActions({ sandbox, tree, question, onMoved, onDone }: ActionProps): ReactElement {
  const { workbench, files } = useParts()
  const refresh = async (...folders: readonly string[]): Promise<void> => {
    await Promise.all([...new Set(folders)].map((folder) => tree.load(folder)))
  }
  const run = (what: string, act: () => Promise<void>): void => {
    onDone()
    void workbench.attempt(what, act)
  }
  const move = async (from: string, typed: string): Promise<void> => {
    const to = cleanPath(typed)
    await files.move({ sandbox, from, to }, () => renameFile(sandbox, from, to))
    tree.remove(from)
    onMoved(to)
    void refresh(parentOf(from), parentOf(to)).then(() => tree.reveal(to))
  }

  switch (question.ask) {
    case 'newFile':
    case 'newFolder': {
      const isFile = question.ask === 'newFile'
      const make = async (typed: string): Promise<void> => {
        const path = cleanPath(typed)
        if (isFile) await makeFile(sandbox, path)
        else await makeFolder(sandbox, path)
        void refresh(parentOf(path))
        if (isFile)
          workbench.changeLayout((layout) => reveal(layout, { kind: 'file', sandbox, path }, workbench.mint))
      }
      return (
        <PathDialog
          title={isFile ? fileTexts.newFile : fileTexts.newFolder}
          initial={question.folder === ROOT ? '' : `${question.folder}/`}
          yes={fileTexts.create}
          failure={(path) => fileTexts.cannotCreate(displayName(path))}
          onName={make}
          onClose={onDone}
        />
      )
    }
    case 'rename':
      return (
        <PathDialog
          title={fileTexts.renameTitle(displayName(baseName(question.path)))}
          initial={question.path}
          yes={fileTexts.move}
          failure={() => fileTexts.cannotMove(displayName(question.path))}
          onName={(to) => move(question.path, to)}
          onClose={onDone}
        />
      )
    case 'moveInto':
      return (
        <Confirm
          title={fileTexts.moveTitle(displayName(baseName(question.path)))}
          yes={fileTexts.move}
          onAnswer={(isYes) => {
            if (!isYes) return onDone()
            const to = joinPath(question.folder, baseName(question.path))
            run(fileTexts.cannotMove(displayName(question.path)), () => move(question.path, to))
          }}
        >
          <p>
            {fileTexts.moveTo(question.folder === ROOT ? fileTexts.workspace : displayName(question.folder))}
          </p>
        </Confirm>
      )
    case 'remove':
      return (
        <Confirm
          title={fileTexts.deleteTitle(displayName(baseName(question.path)))}
          yes={fileTexts.delete}
          isDangerous
          onAnswer={(isYes) => {
            if (!isYes) return onDone()
            run(fileTexts.cannotDelete(displayName(question.path)), async () => {
              await removeFile(sandbox, question.path)
              tree.remove(question.path)
              await refresh(parentOf(question.path))
            })
          }}
        >
          <p>{question.isFolder ? fileTexts.folderLost : fileTexts.fileLost}</p>
        </Confirm>
      )
    case 'upload':
      return <UploadDialog sandbox={sandbox} question={question} onDone={onDone} refresh={refresh} />
  }
}

/** Asks for a path until the operation succeeds or is canceled. */
function PathDialog({
  title,
  initial,
  yes,
  failure,
  onName,
  onClose,
}: {
  readonly title: string
  readonly initial: string
  readonly yes: string
  /** Describes the failed operation. */
  readonly failure: (path: string) => string
  readonly onName: (path: string) => Promise<void>
  readonly onClose: () => void
}): ReactElement {
  const [name, setName] = useState(initial)
  const { workbench } = useParts()
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const isGone = useRef(false)
  useEffect(() => {
    isGone.current = false
    return () => void (isGone.current = true)
  }, [])
  const submit = async (): Promise<void> => {
    const nameProblem = findNameProblem(name)
    setProblem(nameProblem)
    if (nameProblem !== undefined) return
    setBusy(true)
    try {
      await onName(name)
      onClose()
    } catch (caught) {
      const message = formatFailure(failure(name), caught)
      if (isGone.current) workbench.notify('error', message)
      else setProblem(printable(message))
    }
    setBusy(false)
  }
  return (
    <FormDialog
      title={title}
      problem={problem ?? ''}
      yes={yes}
      busy={isBusy ? yes : undefined}
      onSubmit={submit}
      onChange={() => setProblem(undefined)}
      onClose={onClose}
    >
      <label className="field">
        <span>{fileTexts.path}</span>
        <input
          autoFocus
          value={name}
          spellCheck={false}
          autoCapitalize="none"
          onChange={(event) => setName(event.target.value)}
          onFocus={(event) => {
            const at = event.target.value.lastIndexOf('/') + 1
            event.target.setSelectionRange(at, event.target.value.length)
          }}
        />
      </label>
    </FormDialog>
  )
}

/** Files listed in the dialog. */
const MAX_SHOWN = 8

/** Confirms an upload: which files, where to, and whether to replace existing ones. */
function UploadDialog({
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
    workbench.notify(kind, text)
    await refresh(folder)
  }
  return (
    <Confirm
      title={
        files.length === 1
          ? fileTexts.uploads.one(displayName(files[0]?.path ?? ''))
          : fileTexts.uploads.several(files.length)
      }
      yes={fileTexts.uploads.upload}
      onAnswer={(isYes) => {
        if (isYes) void upload()
        else onDone()
      }}
    >
      <p>
        {fileTexts.uploads.to(folder === ROOT ? fileTexts.uploads.workspaceOf(name) : displayName(folder))}
      </p>
      {files.length > 1 && (
        <pre className="preview">
          {formatPaths(
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
