import { useStore } from '@sandwire/react'
import type { Layout } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { nameSandbox } from '../state/sandbox-names.ts'
import { labelTabs, type TabLabel } from './tab-labels.ts'

/** What the tabs say, kept up with what terminals tell and with what is learned of sandboxes. */
export function useTabLabels(layout: Layout): ReadonlyMap<string, TabLabel> {
  const { workbench, terminals } = useParts()
  const sessions = useStore(terminals.sessions.all)
  const names = useStore(workbench.names.all)
  const person = useStore(workbench.person)
  const isGuest = person.is === 'ready' && person.value?.guest === true
  return labelTabs(layout, {
    titles: Object.fromEntries(Object.entries(sessions).map(([session, { title }]) => [session, title])),
    nameSandbox: (sandbox) => nameSandbox(sandbox, names, isGuest),
  })
}
