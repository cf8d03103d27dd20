import type { AttachRequest } from '@sandwire/client'
import { validateEnv, type RunOptions } from '../options/attach-options.ts'

/** The object without undefined members. */
function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

export function createRequest(options: RunOptions, isPty: boolean): AttachRequest {
  const { sandbox, session, cmd, args, template, params, cwd, role, keepSeconds, overflow } = options
  const { lifetimeSeconds, idleSeconds, pane } = options
  return {
    args,
    params,
    mode: isPty ? 'pty' : 'pipe',
    take: options.takesOver,
    create: options.mayCreate,
    pin: options.isPinned,
    ...defined({ sandbox, session, cmd, template, cwd, role, keepSeconds, overflow }),
    ...defined({ lifetimeSeconds, idleSeconds, pane }),
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** Variables that describe the terminal to programs. */
const TERMINAL_VARIABLES = /^(TERM|COLORTERM|LANG|LC_[A-Z]+)$/

/**
 * The environment to send: variables of the terminal in PTY mode, then the requested ones. Requested variables without a
 * value are copied, and omitted when unset. Throws `UsageError`.
 */
export function collectEnv(
  own: Environment,
  requested: readonly (readonly [name: string, value: string | undefined])[],
  isPty: boolean,
): Record<string, string> {
  // A map, because assigning `__proto__` to an object would set its prototype.
  const variables = new Map<string, string>()
  for (const [name, value] of Object.entries(own))
    if (isPty && value !== undefined && TERMINAL_VARIABLES.test(name)) variables.set(name, value)
  for (const [name, given] of requested) {
    const value = given ?? (Object.hasOwn(own, name) ? own[name] : undefined)
    if (value !== undefined) variables.set(name, value)
  }
  const env = Object.fromEntries(variables)
  validateEnv(env)
  return env
}
