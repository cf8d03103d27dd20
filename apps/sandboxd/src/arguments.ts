import { parseArgs } from 'node:util'
import { GATEWAY_PORT, isSandboxId } from '@sandwire/internal-api'
import { PROXY_PORT } from './forward-port.ts'
import type { RunAs } from './processes/run-as.ts'
import type { ListenAddress } from './server.ts'
import {
  DEFAULT_MAX_MESSAGE_BYTES,
  DEFAULT_MAX_SESSIONS,
  DEFAULT_REQUESTS_PER_SECOND,
  DEFAULT_SESSION_LIMITS,
} from './settings.ts'
import { DEFAULT_STOP_SECONDS } from './shutdown-plan.ts'
import { limits, type SessionLimits } from '@sandwire/protocol'

export const HELP = `sandboxd: runs processes in a sandbox and attaches WebSocket clients to them

Usage: sandboxd --secret-file FILE | --public-key FILE --sandbox ID [options]

  --listen ADDRESS          127.0.0.1:8080 (default), HOST:PORT, or unix:PATH; port 0 picks a free one
  --workspace DIR           directory in which processes start (default: the current one)
  --save-home DIR           folder that is saved besides the workspace
  --state DIR               folder for journals and results of agents, which processes cannot write
  --shared-workspace        programs outside the sandbox use the workspace too: leave their lock files alone
  --secret-file FILE        file with the bearer secret; removed after reading
  --public-key FILE         file with control's public key, which verifies the tokens of requests
  --sandbox ID              the sandbox that tokens must be for
  --insecure                no secret; only on a loopback address or a unix socket
  --origin ORIGIN           web origin that may connect (repeatable; default: none)
  --host HOST[:PORT]        further Host header to accept (repeatable)
  --shell FILE              command for clients that name none (default: the login shell)
  --run-as UID:GID          run processes as this user (needs capabilities)
  --env-file FILE           JSON object added to the environment of processes; removed after reading
  --proxy-socket PATH       unix socket of a proxy, forwarded from 127.0.0.1:${PROXY_PORT}
  --gateway-socket PATH     unix socket of the credential gateway, forwarded from 127.0.0.1:${GATEWAY_PORT}

Limits
  --max-sessions N          sessions at a time (${DEFAULT_MAX_SESSIONS})
  --max-lifetime-seconds N  from the creation of a session to its end (0: no limit)
  --max-idle-seconds N      without input and output while a client is attached, to its end (0: no limit)
  --max-attachments N       attachments of one session (${DEFAULT_SESSION_LIMITS.maxAttachments})
  --log-bytes N             output stored per session for resume (${DEFAULT_SESSION_LIMITS.logBytes})
  --max-message-bytes N     largest WebSocket message accepted (${DEFAULT_MAX_MESSAGE_BYTES})
  --messages-per-second N   messages from one connection (${DEFAULT_SESSION_LIMITS.messagesPerSecond})
  --requests-per-second N   HTTP requests and upgrades (${DEFAULT_REQUESTS_PER_SECOND})
  --output-bytes-per-second N   output per account, or per attachment with a shared secret (0: no limit)
  --grace-seconds N         how long a session without a driver blocks before it trims (${DEFAULT_SESSION_LIMITS.graceMs / 1000})
  --stall-seconds N         how long a driver that reads nothing may block a trimming session (${DEFAULT_SESSION_LIMITS.stallMs / 1000})
  --stop-seconds N          from SIGTERM to the end of all processes (${DEFAULT_STOP_SECONDS})
  --last-save-seconds N     after that, how long control may take to save the files once more (0)

  --help, --version
`

/** The source of the credential. */
export type CredentialArgument =
  | { readonly kind: 'none' }
  | { readonly kind: 'secret'; readonly file: string }
  | { readonly kind: 'token'; readonly publicKeyFile: string; readonly sandbox: string }

export type Arguments =
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'invalid'; readonly message: string }
  | {
      readonly kind: 'run'
      readonly listen: ListenAddress
      readonly workspace: string
      readonly isWorkspaceShared: boolean
      readonly saveHome: string | undefined
      readonly state: string | undefined
      readonly credential: CredentialArgument
      readonly origins: readonly string[]
      readonly hosts: readonly string[]
      readonly shell: string | undefined
      readonly runAs: RunAs | undefined
      readonly envFile: string | undefined
      readonly proxySocket: string | undefined
      readonly gatewaySocket: string | undefined
      readonly maxSessions: number
      readonly maxLifetimeSeconds: number
      readonly maxIdleSeconds: number
      readonly requestsPerSecond: number
      readonly maxMessageBytes: number
      readonly stopMs: number
      readonly lastSaveMs: number
      readonly session: SessionLimits
    }

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1'])

function parseListen(text: string): ListenAddress | undefined {
  if (text.startsWith('unix:')) return text.length > 5 ? { kind: 'unix', path: text.slice(5) } : undefined
  const match = /^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})$/.exec(text)
  const port = Number(match?.[2])
  if (match?.[1] === undefined || !(port <= 65_535)) return undefined
  return { kind: 'tcp', hostname: match[1].replace(/^\[|\]$/g, ''), port }
}

/** Origins are compared exactly, so they must be written as browsers send them. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

class UsageError extends Error {}

function parseInteger(
  name: string,
  text: string | undefined,
  range: { min: number; fallback: number },
): number {
  if (text === undefined) return range.fallback
  const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= range.min)) throw new UsageError(`--${name} takes a whole number from ${range.min}`)
  return value
}

/** 0: none. */
function parseTimeout(name: string, text: string | undefined): number {
  const seconds = parseInteger(name, text, { min: 0, fallback: 0 })
  if (seconds > limits.MAX_SESSION_SECONDS)
    throw new UsageError(`--${name} takes at most ${limits.MAX_SESSION_SECONDS}`)
  return seconds
}

/** Exactly one credential is required. */
function parseCredential(
  values: {
    readonly 'secret-file'?: string
    readonly 'public-key'?: string
    readonly sandbox?: string
    readonly insecure: boolean
  },
  listen: ListenAddress,
): CredentialArgument {
  const { 'secret-file': file, 'public-key': publicKeyFile, sandbox, insecure } = values
  const given = [file, publicKeyFile, insecure ? '' : undefined].filter((value) => value !== undefined)
  if (given.length === 0) throw new UsageError('no credential: give --secret-file FILE')
  if (given.length > 1)
    throw new UsageError('--secret-file, --public-key and --insecure are mutually exclusive')
  if ((publicKeyFile === undefined) !== (sandbox === undefined))
    throw new UsageError('--public-key and --sandbox must be given together')
  if (publicKeyFile !== undefined && sandbox !== undefined) {
    if (!isSandboxId(sandbox)) throw new UsageError('--sandbox takes the id of a sandbox')
    return { kind: 'token', publicKeyFile, sandbox }
  }
  if (file !== undefined) return { kind: 'secret', file }
  if (listen.kind === 'tcp' && !LOOPBACK.has(listen.hostname))
    throw new UsageError('--insecure works only on a loopback address or a unix socket')
  return { kind: 'none' }
}

/** Refuses root, because sandboxd protects itself from processes by running them as another user. */
function parseRunAs(text: string | undefined): RunAs | undefined {
  if (text === undefined) return undefined
  const [, uid, gid] = /^([1-9][0-9]{0,8}):([1-9][0-9]{0,8})$/.exec(text) ?? []
  if (uid === undefined || gid === undefined)
    throw new UsageError('--run-as takes UID:GID, neither of them 0')
  return { uid: Number(uid), gid: Number(gid) }
}

function parse(argv: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...argv],
    strict: true,
    allowPositionals: false,
    options: {
      listen: { type: 'string', default: '127.0.0.1:8080' },
      workspace: { type: 'string', default: '.' },
      'shared-workspace': { type: 'boolean', default: false },
      'secret-file': { type: 'string' },
      'public-key': { type: 'string' },
      sandbox: { type: 'string' },
      'save-home': { type: 'string' },
      state: { type: 'string' },
      insecure: { type: 'boolean', default: false },
      origin: { type: 'string', multiple: true, default: [] },
      host: { type: 'string', multiple: true, default: [] },
      shell: { type: 'string' },
      'run-as': { type: 'string' },
      'env-file': { type: 'string' },
      'proxy-socket': { type: 'string' },
      'gateway-socket': { type: 'string' },
      'max-sessions': { type: 'string' },
      'max-lifetime-seconds': { type: 'string' },
      'max-idle-seconds': { type: 'string' },
      'max-attachments': { type: 'string' },
      'log-bytes': { type: 'string' },
      'max-message-bytes': { type: 'string' },
      'messages-per-second': { type: 'string' },
      'requests-per-second': { type: 'string' },
      'output-bytes-per-second': { type: 'string' },
      'grace-seconds': { type: 'string' },
      'stall-seconds': { type: 'string' },
      'stop-seconds': { type: 'string' },
      'last-save-seconds': { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
      version: { type: 'boolean', default: false },
    },
  })
  if (values.help) return { kind: 'help' }
  if (values.version) return { kind: 'version' }
  const listen = parseListen(values.listen)
  if (listen === undefined) throw new UsageError('--listen takes HOST:PORT or unix:PATH')
  for (const origin of values.origin)
    if (!isOrigin(origin))
      throw new UsageError(`--origin takes an origin such as https://app.example, not "${origin}"`)
  const defaults = DEFAULT_SESSION_LIMITS
  const logBytes = parseInteger('log-bytes', values['log-bytes'], {
    min: 65_536,
    fallback: defaults.logBytes,
  })
  return {
    kind: 'run',
    listen,
    workspace: values.workspace,
    isWorkspaceShared: values['shared-workspace'],
    saveHome: values['save-home'],
    state: values.state,
    credential: parseCredential(values, listen),
    origins: values.origin,
    hosts: values.host,
    shell: values.shell,
    runAs: parseRunAs(values['run-as']),
    envFile: values['env-file'],
    proxySocket: values['proxy-socket'],
    gatewaySocket: values['gateway-socket'],
    maxSessions: parseInteger('max-sessions', values['max-sessions'], {
      min: 1,
      fallback: DEFAULT_MAX_SESSIONS,
    }),
    maxLifetimeSeconds: parseTimeout('max-lifetime-seconds', values['max-lifetime-seconds']),
    maxIdleSeconds: parseTimeout('max-idle-seconds', values['max-idle-seconds']),
    requestsPerSecond: parseInteger('requests-per-second', values['requests-per-second'], {
      min: 1,
      fallback: DEFAULT_REQUESTS_PER_SECOND,
    }),
    maxMessageBytes: parseInteger('max-message-bytes', values['max-message-bytes'], {
      min: 1024,
      fallback: DEFAULT_MAX_MESSAGE_BYTES,
    }),
    stopMs:
      1000 * parseInteger('stop-seconds', values['stop-seconds'], { min: 1, fallback: DEFAULT_STOP_SECONDS }),
    lastSaveMs:
      1000 * parseInteger('last-save-seconds', values['last-save-seconds'], { min: 0, fallback: 0 }),
    session: {
      ...defaults,
      logBytes,
      window: { ...defaults.window, maxBytes: Math.min(defaults.window.maxBytes, logBytes >> 1) },
      maxAttachments: parseInteger('max-attachments', values['max-attachments'], {
        min: 1,
        fallback: defaults.maxAttachments,
      }),
      messagesPerSecond: parseInteger('messages-per-second', values['messages-per-second'], {
        min: 1,
        fallback: defaults.messagesPerSecond,
      }),
      outputBytesPerSecond: parseInteger('output-bytes-per-second', values['output-bytes-per-second'], {
        min: 0,
        fallback: 0,
      }),
      graceMs:
        1000 *
        parseInteger('grace-seconds', values['grace-seconds'], { min: 1, fallback: defaults.graceMs / 1000 }),
      stallMs:
        1000 *
        parseInteger('stall-seconds', values['stall-seconds'], { min: 1, fallback: defaults.stallMs / 1000 }),
    },
  }
}

/** Parses the command line; errors are returned, not thrown. */
export function parseArguments(argv: readonly string[]): Arguments {
  try {
    return parse(argv)
  } catch (error) {
    return {
      kind: 'invalid',
      message: error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'invalid arguments',
    }
  }
}
