import type { CommandSettings } from '@sandwire/operator-settings'
import { findRestrictedVariable, SandwireError } from '@sandwire/protocol'
import type { Scope } from '../auth/identity.ts'

/**
 * Throws unless this caller may give a sandbox this environment. Templates run in it too, and a shell or a loader runs what it
 * finds there, so choosing it is running commands.
 */
export function checkEnvironment(
  { scopes }: { readonly scopes: readonly Scope[] },
  env: Readonly<Record<string, string>>,
  { free }: Pick<CommandSettings, 'free'>,
): void {
  if (scopes.includes('exec') && free !== 'nobody') return
  const name = findRestrictedVariable(env)
  if (name === undefined) return
  const why = free === 'nobody' ? 'only templates are run here' : 'the credential is not good for "exec"'
  throw new SandwireError('forbidden', `Cannot set "${name}": ${why}`)
}
