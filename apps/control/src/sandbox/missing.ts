import { SandwireError } from '@sandwire/protocol'

/** Not there, or not theirs: nobody can tell the two apart. */
export function noSuchSandbox(): SandwireError {
  return new SandwireError('sandbox_not_found', 'No sandbox has this id or name')
}

/** Of several, so many are named. */
const MAX_NAMED = 3

/**
 * Not theirs, but shared with them: under which ids, so that they can say which they mean. It is never guessed, since whoever
 * shares something chooses its name, and could give it that of what somebody is about to make.
 */
export function sharedUnderName(
  name: string,
  shared: readonly { readonly sandbox: string; readonly ownerName: string }[],
): SandwireError {
  const named = shared.slice(0, MAX_NAMED).map(({ sandbox, ownerName }) => `${sandbox} of "${ownerName}"`)
  const more = shared.length > MAX_NAMED ? ' and more' : ''
  const which = `${named.join(', ')}${more}`
  return new SandwireError(
    'sandbox_not_found',
    `No sandbox of yours is called "${name}"; shared with you under that name, use the id: ${which}`,
  )
}

export function noSuchSession(): SandwireError {
  return new SandwireError('session_not_found', 'No session has this id')
}
