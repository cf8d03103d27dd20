import type { ReactElement } from 'react'

export function GitPanel(): ReactElement {
  return <p className="empty">Git</p>
}
