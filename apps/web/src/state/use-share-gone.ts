import { useStore } from '@sandwire/react'
import { useEffect, useState } from 'react'
import { listHeldGrants } from '../api/grants.ts'
import { ApiError } from '../api/request.ts'
import { useParts } from './context.ts'

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
