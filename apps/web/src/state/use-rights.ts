import { useStore } from '@sandwire/react'
import { useParts } from './context.ts'
import { hasPlaceToWork, mayWorkIn, owns } from './rights.ts'

/** Whether to offer what only somebody with a place for shells and files can use. */
export function useHasPlace(): boolean {
  const { workbench } = useParts()
  return hasPlaceToWork(useStore(workbench.person), useStore(workbench.sandboxes))
}

/** Whether to offer a shell in a sandbox. */
export function useMayWorkIn(sandbox: string): boolean {
  const { workbench } = useParts()
  return mayWorkIn(useStore(workbench.sandboxes), sandbox)
}

/** Whether a sandbox is the person's own. */
export function useOwns(sandbox: string): boolean {
  const { workbench } = useParts()
  return owns(useStore(workbench.sandboxes), sandbox)
}
