import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { shellTexts } from '../texts/shell.ts'

/** Marks a tab behind in which something rang. */
export function TabBell({ views }: { readonly views: readonly string[] }): ReactElement | null {
  const { terminals } = useParts()
  const rung = useStore(terminals.bells.rung)
  if (!views.some((view) => rung.has(view))) return null
  return (
    <span className="tab-bell" title={shellTexts.tabs.bell}>
      <span className="visually-hidden">, {shellTexts.tabs.bell}</span>
    </span>
  )
}
