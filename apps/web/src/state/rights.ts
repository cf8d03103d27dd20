import { useStore } from '@sandwire/react'
import { useEffect, useRef, useState } from 'react'
import { listHeldGrants } from '../api/grants.ts'
import type { User } from '../api/identity.ts'
import { ApiError } from '../api/request.ts'
import type { Sandbox } from '../api/sandboxes.ts'
import { useParts } from './context.ts'
import type { Loaded } from './workbench.ts'

type Known = Loaded<readonly Sandbox[]>

/** What a sandbox is called that is made for who has none. */
export const FIRST_SANDBOX = 'dev'

/** Whether the person works in a sandbox, which is named or has an id; as long as the list is not there, nobody is kept from trying. */
export function canWorkIn(sandboxes: Known, sandbox: string): boolean {
  if (sandboxes.is !== 'ready') return true
  const known = sandboxes.value.find(({ id, name }) => id === sandbox || name === sandbox)
  return known === undefined ? sandbox === FIRST_SANDBOX : known.access !== 'viewer'
}

/** Whether a sandbox is the person's own, as far as is known. */
export function isOwner(sandboxes: Known, sandbox: string): boolean {
  if (sandboxes.is !== 'ready') return false
  const known = sandboxes.value.find(({ id, name }) => id === sandbox || name === sandbox)
  return known !== undefined && (known.access ?? 'owner') === 'owner'
}

/** Whether there is a place for the person's own shells and files: a guest has one only where a whole sandbox is shared. */
export function canWork(person: Loaded<User | undefined>, sandboxes: Known): boolean {
  if (person.is !== 'ready' || person.value?.guest !== true) return true
  return sandboxes.is === 'ready' && sandboxes.value.some(({ access }) => access !== 'viewer')
}

/** Whether to offer what only somebody with a place for shells and files can use. */
export function useCanWork(): boolean {
  const { workbench } = useParts()
  return canWork(useStore(workbench.person), useStore(workbench.sandboxes))
}

/** Whether to offer a shell in a sandbox. */
export function useCanWorkIn(sandbox: string): boolean {
  const { workbench } = useParts()
  return canWorkIn(useStore(workbench.sandboxes), sandbox)
}

/** Whether a sandbox is the person's own. */
export function useIsOwner(sandbox: string): boolean {
  const { workbench } = useParts()
  return isOwner(useStore(workbench.sandboxes), sandbox)
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

/** What is in a sandbox ends before what is known of it; afterwards there is nothing to wait for. */
const LOOK_AGAIN_MS = 1_500
const LOOKS = 6

/** Whether nothing in a sandbox is shared with this person any more; a guest without any share is nobody to the server. */
async function isShareGone(sandbox: string): Promise<boolean> {
  try {
    return (await listHeldGrants()).every((grant) => grant.sandbox !== sandbox)
  } catch (caught) {
    return caught instanceof ApiError && caught.status === 401
  }
}

/**
 * Whether somebody else's sandbox in which everything was ended has been destroyed: those to whom one session is shared have no list
 * that it is missing from, but the share itself goes with it.
 */
export function useShareGone(sandbox: string, hasEnded: boolean): boolean {
  const { workbench } = useParts()
  const sandboxes = useStore(workbench.sandboxes)
  const isListed =
    sandboxes.is !== 'ready' || sandboxes.value.some(({ id, name }) => id === sandbox || name === sandbox)
  const isAsked = hasEnded && !isListed
  const [isGone, setGone] = useState(false)
  useEffect(() => {
    if (!isAsked) return undefined
    let looks = 0
    const look = async (): Promise<void> => {
      looks += 1
      if (looks === LOOKS) clearInterval(timer)
      if (!(await isShareGone(sandbox))) return
      clearInterval(timer)
      setGone(true)
    }
    const timer = setInterval(() => void look(), LOOK_AGAIN_MS)
    return () => clearInterval(timer)
  }, [sandbox, isAsked])
  return isAsked && isGone
}
