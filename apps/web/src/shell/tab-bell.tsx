import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'

/** Marks a tab behind in which something rang. */
export function TabBell({ views }: { readonly views: readonly string[] }): ReactElement | null {
  const { terminals } = useParts()
  const rung = useStore(terminals.bells.rung)
  if (!views.some((view) => rung.has(view))) return null
  return (
    <span className="tab-bell" title="It rang">
      <span className="visually-hidden">, rang</span>
    </span>
  )
}
