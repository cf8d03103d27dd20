import { type AttachParameter, type Mode, type Overflow, type Role, SandwireError } from '@sandwire/protocol'

/** What to start or join. */
export interface AttachRequest {
  /** Sandbox to attach in; a server that is one sandbox ignores it. */
  readonly sandbox?: string
  /** Whether to create the sandbox if it does not exist; default true. */
  readonly create?: boolean
  /** Session to join. Without it a process is started. */
  readonly session?: string
  /** Command to start; the server's default is the login shell. */
  readonly cmd?: string
  readonly args?: readonly string[]
  /** A command template of the server, in place of `cmd`, and its parameters. */
  readonly template?: string
  readonly params?: Readonly<Record<string, string>>
  /** A pane of tmux, such as `%3`, in place of a command. */
  readonly pane?: string
  readonly mode?: Mode
  readonly cwd?: string
  readonly role?: Role
  /** Take the lease from the current driver. */
  readonly take?: boolean
  /** Seconds the session lives without a connection. */
  readonly keepSeconds?: number
  /** Seconds until the session is ended: after its creation, and without input and output while attached. */
  readonly lifetimeSeconds?: number
  readonly idleSeconds?: number
  readonly overflow?: Overflow
  /** Keep the sandbox awake while the process runs, even if it is idle. */
  readonly pin?: boolean
}

function parseBase(base: string | URL): URL {
  const url = URL.canParse(base) ? new URL(base) : undefined
  if (url?.protocol === 'http:') url.protocol = 'ws:'
  if (url?.protocol === 'https:') url.protocol = 'wss:'
  if (url?.protocol === 'ws:' || url?.protocol === 'wss:') return url
  throw new SandwireError('bad_request', `Cannot attach to "${String(base)}": not an http or ws URL`)
}

/** The URL of an upgrade: creates a session under `createId`, or joins `session` once it is known. Throws `bad_request`. */
export function attachUrl(
  base: string | URL,
  request: AttachRequest,
  known: { createId: string; session: string | undefined },
): URL {
  const url = parseBase(base)
  if (url.pathname === '' || url.pathname === '/') url.pathname = '/attach'
  const set = (name: AttachParameter | 'template', value: string | number | undefined): void => {
    if (value !== undefined) url.searchParams.set(name, String(value))
  }
  set('sandbox', request.sandbox)
  set('role', request.role)
  // Only on the first connection: a client that has lost the lease must not take it back by reconnecting.
  if (request.take === true && known.session === undefined) set('take', '1')
  const session = known.session ?? request.session
  if (session !== undefined) {
    set('session', session)
    return url
  }
  if (request.create === false) set('create', '0')
  set('createId', known.createId)
  set('cmd', request.cmd)
  for (const arg of request.args ?? []) url.searchParams.append('arg', arg)
  set('template', request.template)
  for (const [name, value] of Object.entries(request.params ?? {}))
    url.searchParams.append('param', `${name}=${value}`)
  set('pane', request.pane)
  // Templates and panes have their own mode.
  if (request.template === undefined && request.pane === undefined) set('mode', request.mode)
  set('cwd', request.cwd)
  set('keep', request.keepSeconds)
  set('lifetime', request.lifetimeSeconds)
  set('idle', request.idleSeconds)
  set('overflow', request.overflow)
  if (request.pin === true) set('pin', '1')
  return url
}
