import { SandwireError } from '@sandwire/protocol'

/** Not there, or not theirs: nobody can tell the two apart. */
export function noSuchSandbox(): SandwireError {
  return new SandwireError('sandbox_not_found', 'No sandbox has this id or name')
}

export function noSuchSession(): SandwireError {
  return new SandwireError('session_not_found', 'No session has this id')
}
