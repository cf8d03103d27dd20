import { type ReactElement, useEffect, useState } from 'react'
import {
  listSavedFolder,
  type SavedEntry,
  type SavedFolder,
  savedUrl,
  type Version,
} from '../api/versions.ts'
import { displayName } from '../files/display-name.ts'
import { formatSize } from '../files/file-kind.ts'
import { Dialog } from '../shell/dialog.tsx'
import { Icon } from '../shell/icon.tsx'
import { messageOf } from '../state/workbench.ts'
import { versionTexts } from '../texts/versions.ts'
import { nameOf } from './describe-saved.ts'

const { browseDialog: texts } = versionTexts

/** Folders first, then by name. */
function inOrder(entries: readonly SavedEntry[]): readonly SavedEntry[] {
  const rank = ({ kind }: SavedEntry): number => (kind === 'folder' ? 0 : 1)
  return entries.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
}

/** The topmost folders have names of their own. */
function labelOf(path: readonly string[], name: string): string {
  if (path.length > 0) return displayName(name)
  return name === 'workspace' || name === 'home' ? texts.folders[name] : displayName(name)
}

/** The files of a version, for reading and downloading. */
export function BrowseDialog({
  sandbox,
  version,
  onClose,
}: {
  readonly sandbox: string
  readonly version: Version
  readonly onClose: () => void
}): ReactElement {
  const [path, setPath] = useState<readonly string[]>(['workspace'])
  const [folder, setFolder] = useState<SavedFolder>()
  const [problem, setProblem] = useState('')
  const joined = path.join('/')
  useEffect(() => {
    let isCurrent = true
    setFolder(undefined)
    setProblem('')
    listSavedFolder(sandbox, version.version, joined).then(
      (listed) => isCurrent && setFolder(listed),
      (caught: unknown) => isCurrent && setProblem(messageOf(caught)),
    )
    return () => {
      isCurrent = false
    }
  }, [sandbox, version.version, joined])
  return (
    <Dialog title={texts.title(nameOf(version))} onClose={onClose}>
      <nav className="version-path" aria-label={texts.path}>
        <button type="button" className="link" onClick={() => setPath([])}>
          {texts.top}
        </button>
        {path.map((name, at) => (
          <span key={path.slice(0, at + 1).join('/')}>
            {' / '}
            <button
              type="button"
              className="link"
              aria-current={at === path.length - 1}
              onClick={() => setPath(path.slice(0, at + 1))}
            >
              {labelOf(path.slice(0, at), name)}
            </button>
          </span>
        ))}
      </nav>
      {problem !== '' && (
        <p className="problem" role="alert">
          {texts.failed}: {problem}
        </p>
      )}
      {folder === undefined && problem === '' && <p className="dim">{versionTexts.loading}</p>}
      {folder?.entries.length === 0 && <p className="dim">{texts.empty}</p>}
      {folder !== undefined && folder.entries.length > 0 && (
        <ul className="rows bordered version-files" aria-label={texts.top}>
          {inOrder(folder.entries).map((entry) => (
            <li key={entry.name} className={entry.kind === 'folder' ? 'row' : 'row plain'}>
              <Entry
                entry={entry}
                label={labelOf(path, entry.name)}
                url={savedUrl(sandbox, version.version, `${joined}/${entry.name}`)}
                onEnter={() => setPath([...path, entry.name])}
              />
            </li>
          ))}
        </ul>
      )}
      {folder?.isComplete === false && <p className="dim">{texts.more}</p>}
      <div className="dialog-actions">
        <button type="button" onClick={onClose}>
          {texts.close}
        </button>
      </div>
    </Dialog>
  )
}

function Entry({
  entry: { name, kind, sizeBytes },
  label,
  url,
  onEnter,
}: {
  readonly entry: SavedEntry
  readonly label: string
  readonly url: string
  readonly onEnter: () => void
}): ReactElement {
  if (kind === 'folder')
    return (
      <button type="button" className="version-entry" onClick={onEnter}>
        <Icon name="folder" />
        <span className="row-text">{label}</span>
      </button>
    )
  return (
    <>
      <Icon name="files" />
      <span className="row-text">{label}</span>
      {sizeBytes !== null && <span className="row-note">{formatSize(sizeBytes)}</span>}
      {kind === 'file' && (
        <a
          className="icon-button"
          href={url}
          download={displayName(name)}
          title={texts.download(label)}
          aria-label={texts.download(label)}
        >
          <Icon name="download" />
        </a>
      )}
    </>
  )
}
