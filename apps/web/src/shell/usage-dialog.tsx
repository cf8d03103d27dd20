import { type ReactElement, useEffect, useState } from 'react'
import { readUsage, type Usage } from '../api/usage.ts'
import { messageOf } from '../state/workbench.ts'
import { shellTexts } from '../texts/shell.ts'
import { Dialog } from './dialog.tsx'
import { usageRows } from './usage-rows.ts'

const { usage: texts } = shellTexts

/** What the account uses, against its limits, as of now. */
export function UsageDialog({ onClose }: { readonly onClose: () => void }): ReactElement {
  const [usage, setUsage] = useState<Usage>()
  const [problem, setProblem] = useState('')
  useEffect(() => {
    const aborter = new AbortController()
    readUsage(aborter.signal).then(setUsage, (caught: unknown) => {
      if (!aborter.signal.aborted) setProblem(messageOf(caught))
    })
    return () => aborter.abort()
  }, [])
  return (
    <Dialog title={texts.title} onClose={onClose}>
      {problem !== '' && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {usage === undefined && problem === '' && <p className="dim">{shellTexts.loading}</p>}
      {usage !== undefined && (
        <table className="usage">
          <thead>
            <tr>
              <th scope="col">{texts.resource}</th>
              <th scope="col">{texts.used}</th>
              <th scope="col">{texts.limit}</th>
            </tr>
          </thead>
          <tbody>
            {usageRows(usage).map(({ name, used, limit }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{used}</td>
                <td>{limit}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <div className="dialog-actions">
        <button type="button" className="primary" onClick={onClose}>
          {shellTexts.settings.done}
        </button>
      </div>
    </Dialog>
  )
}
