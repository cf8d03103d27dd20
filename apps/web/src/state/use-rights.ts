import { useStore } from '@sandwire/react'
import { useRef } from 'react'
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

/** Whether a sandbox that was there is there no longer, as far as this person can see. */
export function useIsGone(sandbox: string): boolean {
  const { workbench } = useParts()
  const wasThere = useRef(false)
  const sandboxes = useStore(workbench.sandboxes)
  if (sandboxes.is !== 'ready') return false
  const isThere = sandboxes.value.some(({ id, name }) => id === sandbox || name === sandbox)
  wasThere.current ||= isThere
  return wasThere.current && !isThere
}
