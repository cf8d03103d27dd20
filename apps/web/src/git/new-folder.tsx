import { type ReactElement, useEffect, useState } from 'react'
import { type FolderListing, listFolder } from '../api/workspace.ts'
import { shownName } from '../files/shown-name.ts'
import { Icon } from '../shell/icon.tsx'
import { type Loaded, messageOf } from '../state/workbench.ts'
import { gitTexts } from '../texts/git.ts'

interface FolderProps {
  readonly sandbox: string
  /** Without a slash at its end. */
  readonly path: string
  readonly onOpen: (path: string) => void
}

function useFolder(sandbox: string, path: string): Loaded<FolderListing> {
  const [listing, setListing] = useState<Loaded<FolderListing>>({ is: 'loading' })
  useEffect(() => {
    let isGone = false
    listFolder(sandbox, path).then(
      (value) => isGone || setListing({ is: 'ready', value }),
      (caught: unknown) => isGone || setListing({ is: 'failed', message: messageOf(caught) }),
    )
    return () => {
      isGone = true
    }
  }, [sandbox, path])
  return listing
}

/** What is in a folder of which git knows nothing, for who wants to see it before it is staged or deleted. */
export function NewFolderFiles({ sandbox, path, onOpen }: FolderProps): ReactElement {
  const listing = useFolder(sandbox, path)
  if (listing.is === 'loading') return <p className="git-inside dim">{gitTexts.loading}</p>
  if (listing.is === 'failed') return <p className="git-inside dim">{listing.message}</p>
  const { entries, truncated } = listing.value
  return (
    <>
      {entries.length === 0 && <p className="git-inside dim">{gitTexts.emptyFolder}</p>}
      <ul className="rows git-inside" aria-label={gitTexts.filesIn(shownName(path))}>
        {entries.map(({ name, kind }) => (
          <NewEntry
            key={name}
            sandbox={sandbox}
            path={`${path}/${name}`}
            name={name}
            isFolder={kind === 'folder'}
            onOpen={onOpen}
          />
        ))}
      </ul>
      {truncated && <p className="git-inside dim">{gitTexts.moreFiles}</p>}
    </>
  )
}

function NewEntry({
  name,
  isFolder,
  ...folder
}: FolderProps & { readonly name: string; readonly isFolder: boolean }): ReactElement {
  const [isShown, setShown] = useState(false)
  return (
    <li>
      <div className="row git-row">
        <button
          type="button"
          className="row-main"
          aria-expanded={isFolder ? isShown : undefined}
          title={shownName(folder.path)}
          onClick={() => (isFolder ? setShown(!isShown) : folder.onOpen(folder.path))}
        >
          <Icon name={isFolder ? 'folder' : 'files'} />
          <span className="row-name">{shownName(name)}</span>
        </button>
      </div>
      {isShown && <NewFolderFiles {...folder} />}
    </li>
  )
}
