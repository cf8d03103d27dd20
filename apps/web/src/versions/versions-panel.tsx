import { useStore } from '@sandwire/react'
import { type ReactElement, useCallback, useEffect, useState } from 'react'
import type { Sandbox } from '../api/sandboxes.ts'
import { listVersions, type Version } from '../api/versions.ts'
import { IconButton } from '../shell/icon.tsx'
import { useParts } from '../state/context.ts'
import { versionTexts } from '../texts/versions.ts'
import { CheckpointDialog } from './checkpoint-dialog.tsx'
import { VersionRow } from './version-row.tsx'

/** The timeline: saved versions of the selected sandbox. It need not run. */
export function VersionsPanel(): ReactElement {
  const { workbench } = useParts()
  const current = useStore(workbench.current)
  const sandboxes = useStore(workbench.sandboxes)
  if (sandboxes.kind === 'loading') return <p className="empty">{versionTexts.loading}</p>
  const sandbox = sandboxes.kind === 'ready' ? sandboxes.value.find(({ id }) => id === current) : undefined
  if (sandbox === undefined) return <p className="empty">{versionTexts.select}</p>
  if (sandbox.access === 'viewer') return <p className="empty">{versionTexts.notShared(sandbox.name)}</p>
  if (sandbox.saved === null) return <p className="empty">{versionTexts.notSaved}</p>
  return <Timeline key={sandbox.id} sandbox={sandbox} />
}

function Timeline({ sandbox }: { readonly sandbox: Sandbox }): ReactElement {
  const { workbench, fileStatuses } = useParts()
  const { id, name } = sandbox
  const [versions, setVersions] = useState<readonly Version[]>()
  const [isCreating, setCreating] = useState(false)
  const savedMs = useStore(fileStatuses.status)?.saved.savedMs
  const refresh = useCallback(async () => {
    const listed = await workbench.attempt(versionTexts.cannotList, () => listVersions(id))
    if (listed !== undefined) setVersions(listed)
  }, [workbench, id])
  // Reloads when a version was saved.
  useEffect(() => void refresh(), [refresh, savedMs])
  return (
    <>
      <header className="panel-head">
        <h2>
          {versionTexts.title}
          <span className="git-sandbox">{name}</span>
        </h2>
        <IconButton icon="plus" label={versionTexts.newCheckpoint.title} onClick={() => setCreating(true)} />
        <IconButton icon="refresh" label={versionTexts.refresh} onClick={() => void refresh()} />
      </header>
      {versions === undefined && <p className="empty">{versionTexts.loading}</p>}
      {versions?.length === 0 && <p className="empty">{versionTexts.none}</p>}
      {versions !== undefined && versions.length > 0 && (
        <ul className="rows" aria-label={versionTexts.list}>
          {versions.map((version) => (
            <VersionRow
              key={version.version}
              sandbox={sandbox}
              version={version}
              versions={versions}
              refresh={refresh}
            />
          ))}
        </ul>
      )}
      {isCreating && (
        <CheckpointDialog
          sandbox={id}
          onClose={(isCreated) => {
            setCreating(false)
            if (isCreated) void refresh()
          }}
        />
      )}
    </>
  )
}
