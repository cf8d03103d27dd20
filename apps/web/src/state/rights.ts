import { useStore } from '@sandwire/react'
import { useEffect, useRef, useState } from 'react'
import { listHeldGrants } from '../api/grants.ts'
import type { User } from '../api/identity.ts'
import { ApiError } from '../api/request.ts'
import type { Sandbox } from '../api/sandboxes.ts'
import { useParts } from './context.ts'
import type { Loaded } from './workbench.ts'

type Known = Loaded<readonly Sandbox[]>

type KnownUser = Loaded<User | undefined>

/** Name of the sandbox that is created for a user who has none; undefined until the user is known. */
export function firstSandboxOf(user: KnownUser): string | undefined {
  return user.kind === 'ready' ? user.value?.firstSandbox : undefined
}

/** True when the user may work in a sandbox, given by id or name. Until the list is loaded, anything may be tried. */
export function canWorkIn(user: KnownUser, sandboxes: Known, sandbox: string): boolean {
  if (sandboxes.kind !== 'ready') return true
  const known = sandboxes.value.find(({ id, name }) => id === sandbox || name === sandbox)
  return known === undefined ? sandbox === firstSandboxOf(user) : known.access !== 'viewer'
}

/** True when the sandbox is known to be the user's own. */
export function isOwner(sandboxes: Known, sandbox: string): boolean {
  if (sandboxes.kind !== 'ready') return false
  const known = sandboxes.value.find(({ id, name }) => id === sandbox || name === sandbox)
  return known !== undefined && (known.access ?? 'owner') === 'owner'
}

/** True when the user has somewhere to run shells: a guest only if a whole sandbox is shared. */
export function canWork(user: KnownUser, sandboxes: Known): boolean {
  if (user.kind !== 'ready' || user.value?.guest !== true) return true
  return sandboxes.kind === 'ready' && sandboxes.value.some(({ access }) => access !== 'viewer')
}

export function useCanWork(): boolean {
  const { workbench } = useParts()
  return canWork(useStore(workbench.user), useStore(workbench.sandboxes))
}

export function useCanWorkIn(sandbox: string): boolean {
  const { workbench } = useParts()
  return canWorkIn(useStore(workbench.user), useStore(workbench.sandboxes), sandbox)
}

export function useIsOwner(sandbox: string): boolean {
  const { workbench } = useParts()
  return isOwner(useStore(workbench.sandboxes), sandbox)
}

/** True when a sandbox was listed and no longer is. */
export function useIsGone(sandbox: string): boolean {
  const { workbench } = useParts()
  const wasThere = useRef(false)
  const sandboxes = useStore(workbench.sandboxes)
  if (sandboxes.kind !== 'ready') return false
  const isThere = sandboxes.value.some(({ id, name }) => id === sandbox || name === sandbox)
  wasThere.current ||= isThere
  return wasThere.current && !isThere
}

/** The grant of a destroyed sandbox disappears shortly after its sessions end. */
const POLL_MS = 1_500
const MAX_POLLS = 6

/** True when the user holds no grant on a sandbox any more. A guest without any grant is signed out. */
async function isShareGone(sandbox: string): Promise<boolean> {
  try {
    return (await listHeldGrants()).every((grant) => grant.sandbox !== sandbox)
  } catch (caught) {
    return caught instanceof ApiError && caught.status === 401
  }
}

/**
 * True when another account's sandbox was destroyed. Users with a grant on one session do not see the sandbox in a
 * list, but the grant disappears with it.
 */
export function useShareGone(sandbox: string, hasEnded: boolean): boolean {
  const { workbench } = useParts()
  const sandboxes = useStore(workbench.sandboxes)
  const isListed =
    sandboxes.kind !== 'ready' || sandboxes.value.some(({ id, name }) => id === sandbox || name === sandbox)
  const isPolled = hasEnded && !isListed
  const [isGone, setGone] = useState(false)
  useEffect(() => {
    if (!isPolled) return undefined
    let polls = 0
    const poll = async (): Promise<void> => {
      polls += 1
      if (polls === MAX_POLLS) clearInterval(timer)
      if (!(await isShareGone(sandbox))) return
      clearInterval(timer)
      setGone(true)
    }
    const timer = setInterval(() => void poll(), POLL_MS)
    return () => clearInterval(timer)
  }, [sandbox, isPolled])
  return isPolled && isGone
}
