import type { AttachRequest } from '@sandwire/client'
import type { RunOptions } from '../options/arguments.ts'

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
    take: options.isTaking,
    create: options.mayCreate,
    pin: options.isPinned,
    ...defined({ sandbox, session, cmd, template, cwd, role, keepSeconds, overflow }),
  }
}
