import type { Person } from '../api/identity.ts'
import type { Sandbox } from '../api/sandboxes.ts'
import type { Loaded } from './workbench.ts'

type Known = Loaded<readonly Sandbox[]>

/** What a sandbox is called that is made for who has none. */
export const FIRST_SANDBOX = 'dev'

/** Whether the person works in a sandbox, which is named or has an id; as long as the list is not there, nobody is kept from trying. */
export function mayWorkIn(sandboxes: Known, sandbox: string): boolean {
  if (sandboxes.is !== 'ready') return true
  const known = sandboxes.value.find(({ id, name }) => id === sandbox || name === sandbox)
  return known === undefined ? sandbox === FIRST_SANDBOX : known.access !== 'viewer'
}

/** Whether a sandbox is the person's own, as far as is known. */
export function owns(sandboxes: Known, sandbox: string): boolean {
  if (sandboxes.is !== 'ready') return false
  const known = sandboxes.value.find(({ id, name }) => id === sandbox || name === sandbox)
  return known !== undefined && (known.access ?? 'owner') === 'owner'
}

/** Whether there is a place for the person's own shells and files: a guest has one only where a whole sandbox is shared. */
export function hasPlaceToWork(person: Loaded<Person | undefined>, sandboxes: Known): boolean {
  if (person.is !== 'ready' || person.value?.guest !== true) return true
  return sandboxes.is === 'ready' && sandboxes.value.some(({ access }) => access !== 'viewer')
}
