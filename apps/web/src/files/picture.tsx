import { type ReactElement, useEffect, useState } from 'react'
import { shownName } from './shown-name.ts'

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
  const [isBroken, setBroken] = useState(false)
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }))
    setUrl(made)
    setBroken(false)
    return () => URL.revokeObjectURL(made)
  }, [bytes, type])
  if (isBroken)
    return (
      <p className="empty">This picture cannot be shown: the file is damaged, or not what its name says.</p>
    )
  return (
    <div className="picture">
      {url !== undefined && <img src={url} alt={shownName(path)} onError={() => setBroken(true)} />}
    </div>
  )
}
