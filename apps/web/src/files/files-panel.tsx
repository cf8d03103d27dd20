import type { ReactElement } from 'react'

export function FilesPanel(): ReactElement {
  return <p className="empty">Files</p>
}
