import { type ReactElement, useState } from 'react'
import { ApiError } from '../api/request.ts'
import { makeFolder, removeFile, renameFile, writeFile } from '../api/workspace.ts'
import { reveal } from '../layout/layout.ts'
import { Confirm } from '../shell/dialog.tsx'
import { baseName, useSandboxName } from '../shell/view-title.ts'
import { useParts } from '../state/context.ts'
import type { FileTree } from './file-tree.ts'
import { NameDialog } from './name-dialog.tsx'
import { joinPath, parentOf, ROOT } from './paths.ts'
import { shownName } from './shown-name.ts'
import type { Dropped } from './upload.ts'

/** Something about files that needs an answer first. */
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
  readonly onDone: () => void
}

/** Makes an empty file where there is none. */
async function makeFile(sandbox: string, path: string): Promise<void> {
  try {
    await writeFile(sandbox, path, '', 'new')
  } catch (caught) {
    const isThere = caught instanceof ApiError && caught.code === 'file_changed'
    throw isThere ? new Error('it is there already', { cause: caught }) : caught
  }
}

/** Asks, does it, and shows what became of it. */
export function FileActions({ sandbox, tree, question, onDone }: ActionProps): ReactElement {
  const { workbench } = useParts()
  const refresh = async (...folders: readonly string[]): Promise<void> => {
    await Promise.all([...new Set(folders)].map((folder) => tree.load(folder)))
  }
  const run = (what: string, act: () => Promise<void>): void => {
    onDone()
    void workbench.attempt(what, act)
  }
  const move = (from: string, to: string): void =>
    run(`Cannot move ${shownName(from)}`, async () => {
      await renameFile(sandbox, from, to)
      tree.forget(from)
      await refresh(parentOf(from), parentOf(to))
    })

  switch (question.ask) {
    case 'newFile':
    case 'newFolder': {
      const isFile = question.ask === 'newFile'
      const make = (path: string): void =>
        run(`Cannot make ${shownName(path)}`, async () => {
          if (isFile) await makeFile(sandbox, path)
          else await makeFolder(sandbox, path)
          await refresh(parentOf(path))
          if (isFile)
            workbench.changeLayout((layout) =>
              reveal(layout, { kind: 'file', sandbox, path }, workbench.mint),
            )
        })
      return (
        <NameDialog
          title={isFile ? 'New file' : 'New folder'}
          initial={question.folder === ROOT ? '' : `${question.folder}/`}
          yes="Make it"
          onName={make}
          onClose={onDone}
        />
      )
    }
    case 'rename':
      return (
        <NameDialog
          title={`Rename or move ${shownName(baseName(question.path))}`}
          initial={question.path}
          yes="Move"
          onName={(to) => move(question.path, to)}
          onClose={onDone}
        />
      )
    case 'moveInto':
      return (
        <Confirm
          title={`Move ${shownName(baseName(question.path))}?`}
          yes="Move"
          onAnswer={(isYes) => {
            if (isYes) move(question.path, joinPath(question.folder, baseName(question.path)))
            else onDone()
          }}
        >
          <p>It goes into {question.folder === ROOT ? 'the workspace' : shownName(question.folder)}.</p>
        </Confirm>
      )
    case 'remove':
      return (
        <Confirm
          title={`Delete ${shownName(baseName(question.path))}?`}
          yes="Delete"
          isDangerous
          onAnswer={(isYes) => {
            if (!isYes) return onDone()
            run(`Cannot delete ${shownName(question.path)}`, async () => {
              await removeFile(sandbox, question.path)
              tree.forget(question.path)
              await refresh(parentOf(question.path))
            })
          }}
        >
          <p>
            {question.isFolder
              ? 'The folder and everything in it are gone for good.'
              : 'The file is gone for good.'}
          </p>
        </Confirm>
      )
    case 'upload':
      return <Upload sandbox={sandbox} question={question} onDone={onDone} refresh={refresh} />
  }
}

function Upload({
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
        files.length === 1 ? `Upload ${shownName(files[0]?.path ?? '')}?` : `Upload ${files.length} files?`
      }
      yes="Upload"
      onAnswer={(isYes) => {
        if (isYes) void upload()
        else onDone()
      }}
    >
      <p>Into {folder === ROOT ? `the workspace of ${name}` : shownName(folder)}.</p>
      <label className="check">
        <input type="checkbox" checked={replaces} onChange={(event) => setReplaces(event.target.checked)} />
        Replace files that are there already
      </label>
    </Confirm>
  )
}
