import type { ReactElement } from 'react'
import type { View } from '../layout/layout.ts'

export function FilePane({
  view,
}: {
  readonly viewId: string
  readonly view: Extract<View, { kind: 'file' }>
  readonly isFocused: boolean
}): ReactElement {
  return <p className="empty">{view.path}</p>
}
