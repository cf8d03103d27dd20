import type { Env } from '../env.ts'
import type { ReadSecret } from './providers.ts'

/** Secrets and variables of the operator, which are bindings of the worker. */
export function secretsOf(env: Env): ReadSecret {
  return (name) => {
    const value: unknown = Reflect.get(env, name)
    return typeof value === 'string' && value !== '' ? value : undefined
  }
}
