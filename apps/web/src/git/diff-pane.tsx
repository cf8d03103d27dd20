import type { ReactElement } from 'react'
import type { View } from '../layout/layout.ts'

export function DiffPane({ view }: { readonly view: Extract<View, { kind: 'diff' }> }): ReactElement {
  return <p className="empty">{view.path}</p>
}
