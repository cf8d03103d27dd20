import { type ReactElement, useState } from 'react'
import { SandboxGate } from '../panels/sandbox-gate.tsx'
import { IconButton } from '../shell/icon-button.tsx'
import { useSandboxName } from '../shell/view-title.ts'
import { FileActions, type FileQuestion } from './file-actions.tsx'
import { parentOf, ROOT } from './paths.ts'
import { Tree } from './tree.tsx'
import { useTree } from './use-tree.ts'

/** The files of the chosen sandbox. */
export function FilesPanel(): ReactElement {
  return <SandboxGate what="its files">{(sandbox) => <Files key={sandbox} sandbox={sandbox} />}</SandboxGate>
}

function Files({ sandbox }: { readonly sandbox: string }): ReactElement {
  const tree = useTree(sandbox)
  const name = useSandboxName(sandbox)
  const [question, setQuestion] = useState<FileQuestion>()
  const [selected, setSelected] = useState<{ path: string; isFolder: boolean }>()
  const folder = selected === undefined ? ROOT : selected.isFolder ? selected.path : parentOf(selected.path)
  return (
    <>
      <header className="panel-head">
        <h2>{name}</h2>
        <IconButton icon="plus" label="New file" onClick={() => setQuestion({ ask: 'newFile', folder })} />
        <IconButton
          icon="folder"
          label="New folder"
          onClick={() => setQuestion({ ask: 'newFolder', folder })}
        />
        <IconButton
          icon="refresh"
          label="Look again"
          onClick={() => void tree.follow({ kind: 'overflow' })}
        />
      </header>
      <Tree
        sandbox={sandbox}
        tree={tree}
        selected={selected?.path}
        onSelect={(path, isFolder) => setSelected({ path, isFolder })}
        onAsk={setQuestion}
      />
      {question !== undefined && (
        <FileActions
          sandbox={sandbox}
          tree={tree}
          question={question}
          onDone={() => setQuestion(undefined)}
        />
      )}
    </>
  )
}
