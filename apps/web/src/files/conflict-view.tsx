import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useRef } from 'react'
import { compareBeside, type Comparison } from '../editor/compare.ts'
import { useParts } from '../state/context.ts'
import { messageOf } from '../state/workbench.ts'
import type { OpenFile } from './open-file.ts'

function explain(theirs: { readonly text: string | undefined } | 'gone', isDirty: boolean): string {
  if (theirs === 'gone')
    return isDirty
      ? 'The file was removed or moved while you changed it. Nothing of yours is lost.'
      : 'The file was removed or moved. This is the text it had.'
  if (theirs.text === undefined)
    return 'The file changed while you changed it too, and is no longer text. Right: yours, which you can still edit.'
  return 'The file changed while you changed it too. Left: on disk. Right: yours, which you can still edit.'
}

/** The file on the disk and the text in the editor, until the person has decided. */
export function ConflictView({
  file,
  path,
  theirs,
}: {
  readonly file: OpenFile
  readonly path: string
  readonly theirs: { readonly text: string | undefined } | 'gone'
}): ReactElement {
  const { workbench } = useParts()
  const isDirty = useStore(file.dirty)
  const place = useRef<HTMLDivElement>(null)
  const comparison = useRef<Comparison>(undefined)
  const before = theirs === 'gone' ? '' : (theirs.text ?? '')
  useEffect(() => {
    let isGone = false
    if (place.current === null) return undefined
    const options = { path, before, after: file.text, onChange: (text: string) => file.edited(text) }
    void compareBeside(place.current, options).then((made) => {
      if (isGone) made.dispose()
      else comparison.current = made
    })
    return () => {
      isGone = true
      comparison.current?.dispose()
      comparison.current = undefined
    }
  }, [file, path, before])
  const keep = async (): Promise<void> => {
    try {
      await file.keepMine(comparison.current?.text ?? file.text)
    } catch (caught) {
      workbench.tell('error', `Cannot save ${path}: ${messageOf(caught)}`)
    }
  }
  return (
    <>
      <div className="banner conflict" role="alert">
        <span>{explain(theirs, isDirty)}</span>
        <button type="button" className="primary" onClick={() => void keep()}>
          {theirs === 'gone' ? 'Write it again' : 'Save the right side'}
        </button>
        <button type="button" className="danger" onClick={() => void file.takeTheirs()}>
          {theirs === 'gone' ? 'Let it go' : 'Drop mine'}
        </button>
      </div>
      <div ref={place} className="editor compare" />
    </>
  )
}
