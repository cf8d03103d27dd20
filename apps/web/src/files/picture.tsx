import { type ReactElement, useEffect, useMemo, useState } from 'react'
import { imageType } from './file-kind.ts'
import type { OpenFile } from './open-file.ts'
import { shownName } from './shown-name.ts'
import { fileTexts } from '../texts/files.ts'

/** A picture, or that there is none in the file. */
export function Picture({
  bytes,
  type,
  path,
}: {
  readonly bytes: Uint8Array
  readonly type: string
  readonly path: string
}): ReactElement {
  const [url, setUrl] = useState<string>()
  /** The address that there was no picture at: another version of the file has another one. */
  const [broken, setBroken] = useState<string>()
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [bytes, type])
  if (url !== undefined && url === broken) return <p className="empty">{fileTexts.pane.brokenImage}</p>
  return (
    <div className="picture">
      {url !== undefined && <img key={url} src={url} alt={shownName(path)} onError={() => setBroken(url)} />}
    </div>
  )
}

/** The picture that the text in an editor is when it is asked for, saved or not. */
export function Drawing({ file, path }: { readonly file: OpenFile; readonly path: string }): ReactElement {
  const { text } = file
  const bytes = useMemo(() => new TextEncoder().encode(text.toString()), [text])
  return <Picture bytes={bytes} type={imageType(path) ?? ''} path={path} />
}
