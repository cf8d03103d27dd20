import { type ReactElement, useEffect, useState } from 'react'
import { compareVersions, type Version, type VersionChange, type VersionDiff } from '../api/versions.ts'
import { displayName } from '../files/display-name.ts'
import { formatSize } from '../files/file-kind.ts'
import { Dialog } from '../shell/dialog.tsx'
import { formatRelativeTime } from '../shell/format-time.ts'
import { messageOf } from '../state/workbench.ts'
import { versionTexts } from '../texts/versions.ts'
import { nameOf } from './describe-saved.ts'

const { compareDialog: texts } = versionTexts

function sizesOf({ beforeBytes, afterBytes }: VersionChange): string {
  if (beforeBytes !== null && afterBytes !== null)
    return texts.sizes(formatSize(beforeBytes), formatSize(afterBytes))
  const only = afterBytes ?? beforeBytes
  return only === null ? '' : formatSize(only)
}

function VersionSelect({
  label,
  versions,
  value,
  onChange,
}: {
  readonly label: string
  readonly versions: readonly Version[]
  readonly value: number
  readonly onChange: (version: number) => void
}): ReactElement {
  return (
    <label className="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(Number(event.target.value))}>
        {versions.map((version) => (
          <option key={version.version} value={version.version}>
            {nameOf(version)} ({formatRelativeTime(version.savedMs, Date.now())})
          </option>
        ))}
      </select>
    </label>
  )
}

/** What differs between two versions: names and sizes. */
export function CompareDialog({
  sandbox,
  version,
  versions,
  onClose,
}: {
  readonly sandbox: string
  readonly version: Version
  readonly versions: readonly Version[]
  readonly onClose: () => void
}): ReactElement {
  const newest = versions[0]?.version ?? version.version
  // Of the newest version, what it changed.
  const previous = versions[1]?.version ?? version.version
  const [from, setFrom] = useState(version.isNewest ? previous : version.version)
  const [to, setTo] = useState(newest)
  const [diff, setDiff] = useState<VersionDiff>()
  const [problem, setProblem] = useState('')
  useEffect(() => {
    let isCurrent = true
    setDiff(undefined)
    setProblem('')
    compareVersions(sandbox, from, to).then(
      (found) => isCurrent && setDiff(found),
      (caught: unknown) => isCurrent && setProblem(messageOf(caught)),
    )
    return () => {
      isCurrent = false
    }
  }, [sandbox, from, to])
  return (
    <Dialog title={texts.title} onClose={onClose}>
      <div className="version-pair">
        <VersionSelect label={texts.from} versions={versions} value={from} onChange={setFrom} />
        <VersionSelect label={texts.to} versions={versions} value={to} onChange={setTo} />
      </div>
      {problem !== '' && (
        <p className="problem" role="alert">
          {texts.failed}: {problem}
        </p>
      )}
      {diff === undefined && problem === '' && <p className="dim">{versionTexts.loading}</p>}
      {diff !== undefined && (
        <p className="dim" role="status">
          {diff.changes.length === 0 ? texts.same : texts.count(diff.changes.length, diff.isComplete)}
        </p>
      )}
      {diff !== undefined && diff.changes.length > 0 && (
        <ul className="rows bordered version-files" aria-label={texts.list}>
          {diff.changes.map((change) => (
            <li key={change.path} className="row plain">
              <span className="row-text">{displayName(change.path)}</span>
              <span className="row-note">
                {texts.changes[change.change]}
                {sizesOf(change) === '' ? '' : ` · ${sizesOf(change)}`}
              </span>
            </li>
          ))}
        </ul>
      )}
      <div className="dialog-actions">
        <button type="button" onClick={onClose}>
          {versionTexts.browseDialog.close}
        </button>
      </div>
    </Dialog>
  )
}
