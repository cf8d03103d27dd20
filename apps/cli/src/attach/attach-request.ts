import type { AttachRequest } from '@sandwire/client'
import { validateEnv, type RunOptions } from '../options/attach-options.ts'

/** The same object without the members that are undefined. */
function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

/** What to ask the server for. */
export function createRequest(options: RunOptions, isPty: boolean): AttachRequest {
  const { sandbox, session, cmd, args, template, params, cwd, role, keepSeconds, overflow } = options
  return {
    args,
    params,
    mode: isPty ? 'pty' : 'pipe',
    take: options.takesOver,
    create: options.mayCreate,
    pin: options.isPinned,
    ...defined({ sandbox, session, cmd, template, cwd, role, keepSeconds, overflow }),
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** What a program needs to know about the terminal it writes to. */
const TERMINAL_VARIABLES = /^(TERM|COLORTERM|LANG|LC_[A-Z]+)$/

/** The environment to send: the terminal's in PTY mode, then what was asked for. Unset variables are left out. Throws `UsageError`. */
export function collectEnv(
  own: Environment,
  asked: readonly (readonly [name: string, value: string | undefined])[],
  isPty: boolean,
): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(own)) {
    if (isPty && value !== undefined && TERMINAL_VARIABLES.test(name)) env[name] = value
  }
  for (const [name, value] of asked) {
    const used = value ?? own[name]
    if (used !== undefined) env[name] = used
  }
  validateEnv(env)
  return env
}
