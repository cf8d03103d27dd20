import { type ReactElement, useRef, useState } from 'react'
import type { Sandbox } from '../api/sandboxes.ts'
import { deleteVersion, forkVersion, listVersions, restoreVersion, type Version } from '../api/versions.ts'
import { formatSize } from '../files/file-kind.ts'
import { Confirm } from '../shell/dialog.tsx'
import { formatRelativeTime } from '../shell/format-time.ts'
import { IconButton } from '../shell/icon.tsx'
import { Menu, type MenuItem } from '../shell/menu.tsx'
import { useParts } from '../state/context.ts'
import type { Workbench } from '../state/workbench.ts'
import { versionTexts } from '../texts/versions.ts'
import { BrowseDialog } from './browse-dialog.tsx'
import { CompareDialog } from './compare-dialog.tsx'
import { nameOf } from './describe-saved.ts'
import { NameDialog } from './name-dialog.tsx'

type Open = 'browse' | 'compare' | 'restore' | 'fork' | 'delete' | undefined

const SANDBOX_NAME = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/

function notesOf({ savedMs, kind, isNewest, addedBytes, isFuzzy, unreadable }: Version): string {
  return [
    formatRelativeTime(savedMs, Date.now()),
    versionTexts.added(formatSize(addedBytes)),
    ...(kind === 'checkpoint' ? [versionTexts.checkpoint] : []),
    ...(isNewest ? [versionTexts.newest] : []),
    ...(isFuzzy ? [versionTexts.fuzzy] : []),
    ...(unreadable > 0 ? [versionTexts.unreadable(unreadable)] : []),
  ].join(' · ')
}

/** Restores a version, and offers to go back to the checkpoint that this made of the current files. */
async function restore(
  workbench: Workbench,
  sandbox: string,
  version: Version,
  refresh: () => Promise<void>,
  done: string,
): Promise<void> {
  const { restoreDialog: texts } = versionTexts
  const notice = workbench.notify('info', texts.restoring)
  await workbench.attempt(texts.failed, async () => {
    const [before] = await listVersions(sandbox)
    await restoreVersion(sandbox, version.version)
    const present = (await listVersions(sandbox)).find(
      (each) => each.kind === 'checkpoint' && each.version >= (before?.version ?? 0),
    )
    const undo =
      present === undefined || present.version === version.version
        ? undefined
        : { label: texts.undo, run: () => void restore(workbench, sandbox, present, refresh, texts.undone) }
    workbench.notify('info', done, undo)
  })
  workbench.dismiss(notice)
  await Promise.all([workbench.refreshSandboxes(), refresh()])
}

/** A version with its time, size and actions. */
export function VersionRow({
  sandbox,
  version,
  versions,
  refresh,
}: {
  readonly sandbox: Sandbox
  readonly version: Version
  readonly versions: readonly Version[]
  readonly refresh: () => Promise<void>
}): ReactElement {
  const [open, setOpen] = useState<Open>()
  const [menu, setMenu] = useState<{ readonly x: number; readonly y: number }>()
  const element = useRef<HTMLDivElement>(null)
  const isOwner = (sandbox.access ?? 'owner') === 'owner'
  const items: readonly MenuItem[] = [
    { label: versionTexts.browse, run: () => setOpen('browse') },
    { label: versionTexts.compare, run: () => setOpen('compare') },
    ...(isOwner
      ? [
          { label: versionTexts.restore, run: () => setOpen('restore') },
          { label: versionTexts.fork, run: () => setOpen('fork') },
        ]
      : []),
    ...(isOwner && !version.isNewest
      ? [{ label: versionTexts.remove, isDangerous: true, run: () => setOpen('delete') }]
      : []),
  ]
  const showMenu = (): void => {
    const { right = 0, bottom = 0 } = element.current?.getBoundingClientRect() ?? {}
    setMenu({ x: right - 200, y: bottom })
  }
  return (
    <li className="version">
      <div ref={element} className="row">
        <button type="button" className="row-main" onClick={() => setOpen('browse')}>
          <span className={version.kind === 'checkpoint' ? 'dot running' : 'dot'} aria-hidden="true" />
          <span className="row-text">
            <span className="row-name">{nameOf(version)}</span>
            <small title={new Date(version.savedMs).toLocaleString()}>{notesOf(version)}</small>
          </span>
        </button>
        <IconButton icon="more" label={versionTexts.actions(nameOf(version))} onClick={showMenu} />
      </div>
      {menu !== undefined && <Menu {...menu} items={items} onClose={() => setMenu(undefined)} />}
      <VersionDialog
        open={open}
        sandbox={sandbox}
        version={version}
        versions={versions}
        refresh={refresh}
        onClose={() => setOpen(undefined)}
      />
    </li>
  )
}

function VersionDialog({
  open,
  sandbox: { id },
  version,
  versions,
  refresh,
  onClose,
}: {
  readonly open: Open
  readonly sandbox: Sandbox
  readonly version: Version
  readonly versions: readonly Version[]
  readonly refresh: () => Promise<void>
  readonly onClose: () => void
}): ReactElement | null {
  const { workbench } = useParts()
  const { restoreDialog, forkDialog, deleteDialog } = versionTexts
  const name = nameOf(version)
  switch (open) {
    case undefined:
      return null
    case 'browse':
      return <BrowseDialog sandbox={id} version={version} onClose={onClose} />
    case 'compare':
      return <CompareDialog sandbox={id} version={version} versions={versions} onClose={onClose} />
    case 'restore':
      return (
        <Confirm
          title={restoreDialog.title(name)}
          yes={restoreDialog.restore}
          isDangerous
          onAnswer={(isYes) => {
            onClose()
            if (isYes) void restore(workbench, id, version, refresh, restoreDialog.done(name))
          }}
        >
          <p>{restoreDialog.text}</p>
        </Confirm>
      )
    case 'fork':
      return (
        <NameDialog
          texts={{
            ...forkDialog,
            title: forkDialog.title(name),
            yes: forkDialog.fork,
            busy: forkDialog.forking,
          }}
          pattern={SANDBOX_NAME}
          run={async (chosen) => {
            const made = await forkVersion(id, version.version, chosen)
            onClose()
            await workbench.refreshSandboxes()
            workbench.choose(made.id)
          }}
          onClose={onClose}
        />
      )
    case 'delete':
      return (
        <Confirm
          title={deleteDialog.title(name)}
          yes={deleteDialog.delete}
          isDangerous
          onAnswer={(isYes) => {
            onClose()
            if (isYes)
              void workbench
                .attempt(deleteDialog.failed, () => deleteVersion(id, version.version))
                .then(refresh)
          }}
        >
          <p>{deleteDialog.text}</p>
        </Confirm>
      )
  }
}
