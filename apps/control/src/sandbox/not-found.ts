import { SandwireError } from '@sandwire/protocol'

/** One error for sandboxes that do not exist and those the caller has no access to. */
export function noSuchSandbox(): SandwireError {
  return new SandwireError('sandbox_not_found', 'No sandbox has this id or name')
}

/** Shared sandboxes that an error lists. */
const MAX_NAMED = 3

/**
 * The caller has no sandbox of this name, but one is shared with it. The id is required, because the other owner chose the
 * name and could pick one that the caller is about to use.
 */
export function sharedUnderName(
  name: string,
  shared: readonly { readonly sandbox: string; readonly ownerName: string }[],
): SandwireError {
  const named = shared.slice(0, MAX_NAMED).map(({ sandbox, ownerName }) => `${sandbox} of "${ownerName}"`)
  const more = shared.length > MAX_NAMED ? ' and more' : ''
  const ids = `${named.join(', ')}${more}`
  return new SandwireError(
    'sandbox_not_found',
    `You have no sandbox "${name}"; sandboxes of that name are shared with you, use an id: ${ids}`,
  )
}

export function beingDestroyed(): SandwireError {
  return new SandwireError('sandbox_destroying', 'The sandbox is being destroyed')
}

export function noSuchSession(): SandwireError {
  return new SandwireError('session_not_found', 'No session has this id')
}

export function noSuchRun(): SandwireError {
  return new SandwireError('run_not_found', 'No run has this id')
}

export function noSuchConversation(): SandwireError {
  return new SandwireError('not_found', 'No conversation has this id')
}
