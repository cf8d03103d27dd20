import { useStore } from '@sandwire/react'
import { shownName } from '../files/shown-name.ts'
import type { View } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { nameSandbox } from '../state/sandbox-names.ts'
import { shellTexts } from '../texts/shell.ts'

/** The last part of a path. */
export function baseName(path: string): string {
  return path.split('/').pop() ?? path
}

/** What a sandbox is called, where only its id is known. */
export function useSandboxName(sandbox: string): string {
  const { workbench } = useParts()
  const names = useStore(workbench.names.all)
  const person = useStore(workbench.person)
  return nameSandbox(sandbox, names, person.is === 'ready' && person.value?.guest === true)
}

/** What a tab says of a view that names itself. */
export function titleOf(
  view: View | undefined,
  terminalTitle: string | undefined,
  sandboxName: string,
): string {
  if (view === undefined) return shellTexts.tabs.empty
  switch (view.kind) {
    case 'terminal':
      return terminalTitle === undefined || terminalTitle === '' ? sandboxName : terminalTitle
    case 'file':
      return shownName(baseName(view.path))
    case 'diff':
      return shellTexts.tabs.changes(shownName(baseName(view.path)))
  }
}
