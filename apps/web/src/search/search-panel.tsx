import type { ReactElement } from 'react'

export function SearchPanel(): ReactElement {
  return <p className="empty">Search</p>
}
