import type { ReactElement } from 'react'
import { ApiError } from '../api/request.ts'
import { makeFolder, removeFile, renameFile, writeFile } from '../api/workspace.ts'
import { reveal } from '../layout/layout.ts'
import { Confirm } from '../shell/dialog.tsx'
import { baseName } from '../shell/view-title.ts'
import { useParts } from '../state/context.ts'
import type { FileTree } from './file-tree.ts'
import { NameDialog } from './name-dialog.tsx'
import { cleanPath, joinPath, parentOf, ROOT } from './paths.ts'
import { shownName } from './shown-name.ts'
import type { Dropped } from './upload.ts'
import { UploadDialog } from './upload-dialog.tsx'
import { fileTexts } from '../texts/files.ts'

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
  /** Something is there now that was elsewhere. */
  readonly onMoved: (path: string) => void
  readonly onDone: () => void
}

/** Makes an empty file where there is none. */
async function makeFile(sandbox: string, path: string): Promise<void> {
  try {
    await writeFile(sandbox, path, '', 'new')
  } catch (caught) {
    const isThere = caught instanceof ApiError && caught.code === 'file_changed'
    throw isThere ? new Error(fileTexts.alreadyExists, { cause: caught }) : caught
  }
}

/** Asks, does it, and shows what became of it. */
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
    tree.forget(from)
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
        <NameDialog
          title={isFile ? fileTexts.newFile : fileTexts.newFolder}
          initial={question.folder === ROOT ? '' : `${question.folder}/`}
          yes={fileTexts.create}
          failure={(path) => fileTexts.cannotCreate(shownName(path))}
          onName={make}
          onClose={onDone}
        />
      )
    }
    case 'rename':
      return (
        <NameDialog
          title={fileTexts.renameTitle(shownName(baseName(question.path)))}
          initial={question.path}
          yes={fileTexts.move}
          failure={() => fileTexts.cannotMove(shownName(question.path))}
          onName={(to) => move(question.path, to)}
          onClose={onDone}
        />
      )
    case 'moveInto':
      return (
        <Confirm
          title={fileTexts.moveTitle(shownName(baseName(question.path)))}
          yes={fileTexts.move}
          onAnswer={(isYes) => {
            if (!isYes) return onDone()
            const to = joinPath(question.folder, baseName(question.path))
            run(fileTexts.cannotMove(shownName(question.path)), () => move(question.path, to))
          }}
        >
          <p>
            {fileTexts.moveTo(question.folder === ROOT ? fileTexts.workspace : shownName(question.folder))}
          </p>
        </Confirm>
      )
    case 'remove':
      return (
        <Confirm
          title={fileTexts.deleteTitle(shownName(baseName(question.path)))}
          yes={fileTexts.delete}
          isDangerous
          onAnswer={(isYes) => {
            if (!isYes) return onDone()
            run(fileTexts.cannotDelete(shownName(question.path)), async () => {
              await removeFile(sandbox, question.path)
              tree.forget(question.path)
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
