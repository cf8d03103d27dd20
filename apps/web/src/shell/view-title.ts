import { useStore } from '@sandwire/react'
import { shownName } from '../files/shown-name.ts'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'

/** The last part of a path. */
export function baseName(path: string): string {
  return path.split('/').pop() ?? path
}

/** What a sandbox is called, where only its id is known. */
export function useSandboxName(sandbox: string): string {
  const { workbench } = useParts()
  const sandboxes = useStore(workbench.sandboxes)
  if (sandboxes.is !== 'ready') return sandbox.slice(0, 8)
  const known = sandboxes.value.find(({ id, name }) => id === sandbox || name === sandbox)
  return known?.name ?? sandbox.slice(0, 8)
}

/** What a tab says of a view that names itself. */
export function titleOf(
  view: View | undefined,
  terminalTitle: string | undefined,
  sandboxName: string,
): string {
  if (view === undefined) return 'Empty'
  switch (view.kind) {
    case 'terminal':
      return terminalTitle === undefined || terminalTitle === '' ? sandboxName : terminalTitle
    case 'file':
      return shownName(baseName(view.path))
    case 'diff':
      return `${shownName(baseName(view.path))} (changes)`
  }
}
