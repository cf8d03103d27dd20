import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useRef, useState } from 'react'
import { usePanelMemory } from '../panels/panel-memory.ts'
import { SandboxGate } from '../panels/sandbox-gate.tsx'
import { IconButton } from '../shell/icon.tsx'
import { useSandboxName } from '../shell/titles.ts'
import { useParts } from '../state/context.ts'
import { fileTexts } from '../texts/files.ts'
import { sandboxTexts } from '../texts/sandboxes.ts'
import { DropTarget, PATH_TYPE, readDropped } from './drops.tsx'
import { FileActions, type FileQuestion } from './file-dialogs.tsx'
import { TreePanel } from './file-tree.ts'
import { parentOf, ROOT } from './paths.ts'
import { Tree } from './tree.tsx'

/** The files of the selected sandbox. */
export function FilesPanel(): ReactElement {
  return (
    <SandboxGate action={sandboxTexts.gate.browse}>
      {(sandbox) => <Files key={sandbox} sandbox={sandbox} />}
    </SandboxGate>
  )
}

function Files({ sandbox }: { readonly sandbox: string }): ReactElement {
  const { workbench, drops } = useParts()
  const treePanel = useTree(sandbox)
  const { tree } = treePanel
  const name = useSandboxName(sandbox)
  const chooser = useRef<HTMLInputElement>(null)
  const [uploadsTo, setUploadsTo] = useState(ROOT)
  const [question, setQuestion] = useState<FileQuestion>()
  const [selected, setSelected] = useState(treePanel.selected)
  const folder = selected === undefined ? ROOT : selected.isFolder ? selected.path : parentOf(selected.path)
  const select = (path: string, isFolder: boolean): void => {
    treePanel.selected = { path, isFolder }
    setSelected(treePanel.selected)
  }
  const dropped = useStore(drops.files)
  useEffect(() => {
    if (dropped.length > 0) setQuestion({ ask: 'upload', folder: ROOT, files: drops.take() })
  }, [dropped, drops])
  const chooseFiles = (into: string): void => {
    setUploadsTo(into)
    chooser.current?.click()
  }
  const drop = async (into: string, transfer: DataTransfer): Promise<void> => {
    const path = transfer.getData(PATH_TYPE)
    if (path !== '') {
      if (parentOf(path) !== into && path !== into) setQuestion({ ask: 'moveInto', path, folder: into })
      return
    }
    const files = await workbench.attempt(fileTexts.uploads.cannotRead, () => readDropped(transfer))
    if (files !== undefined && files.length > 0) setQuestion({ ask: 'upload', folder: into, files })
  }
  return (
    <DropTarget onDrop={(transfer) => void drop(ROOT, transfer)}>
      <header className="panel-head">
        <h2>{name}</h2>
        <IconButton
          icon="plus"
          label={fileTexts.newFile}
          onClick={() => setQuestion({ ask: 'newFile', folder })}
        />
        <IconButton
          icon="folder"
          label={fileTexts.newFolder}
          onClick={() => setQuestion({ ask: 'newFolder', folder })}
        />
        <IconButton icon="upload" label={fileTexts.upload} onClick={() => chooseFiles(folder)} />
        <IconButton
          icon="refresh"
          label={fileTexts.refresh}
          onClick={() => void tree.follow({ kind: 'overflow' })}
        />
      </header>
      <input
        ref={chooser}
        type="file"
        multiple
        hidden
        aria-label={fileTexts.filesToUpload}
        onChange={(event) => {
          const files = [...(event.target.files ?? [])].map((file) => ({ path: file.name, file }))
          // Allows the same files to be chosen again.
          event.target.value = ''
          if (files.length > 0) setQuestion({ ask: 'upload', folder: uploadsTo, files })
        }}
      />
      <Tree
        sandbox={sandbox}
        treePanel={treePanel}
        selected={selected?.path}
        onSelect={select}
        onAsk={setQuestion}
        onUpload={chooseFiles}
        onDrop={(into, transfer) => void drop(into, transfer)}
      />
      {question !== undefined && (
        <FileActions
          sandbox={sandbox}
          tree={tree}
          question={question}
          onMoved={(path) => (treePanel.pendingFocus = path)}
          onDone={() => setQuestion(undefined)}
        />
      )}
    </DropTarget>
  )
}

/** The tree of a sandbox, which follows workspace changes while mounted. */
function useTree(sandbox: string): TreePanel {
  const { watch } = useParts()
  const treePanel = usePanelMemory().trees.getOrCreate(sandbox, () => new TreePanel(sandbox))
  const { tree } = treePanel
  useEffect(() => {
    void tree.reload()
    const stop = watch.subscribe(sandbox, (event) => void tree.follow(event))
    return () => {
      stop()
      tree.rest()
    }
  }, [tree, watch, sandbox])
  return treePanel
}
