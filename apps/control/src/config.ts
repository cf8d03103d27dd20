import { z } from 'zod'

/** Longest time between two looks at a running sandbox. */
const MAX_ALARM_MS = 60_000

const scopeList = z.array(z.enum(['connect', 'exec', 'admin'])).max(3)
const secureUrl = z.string().refine(isSecureUrl)

/** Somebody who says who people are. */
const issuerSchema = z.object({
  /** Names it in URLs and on the command line. */
  id: z.string().regex(/^[a-z0-9-]{1,32}$/),
  /** As people know it. */
  name: z.string().min(1).max(64),
  /** To the letter as its tokens say it. */
  issuer: secureUrl,
  /** Tokens must be meant for one of these. */
  audiences: z.array(z.string().min(1).max(256)).min(1).max(8),
  algorithms: z.array(z.enum(['RS256', 'PS256', 'ES256', 'EdDSA'])).min(1),
  /** What its tokens are good for when they name none of ours, as most issuers cannot. */
  defaultScopes: scopeList,
  /** Our client there, in browsers and on the command line; absent: no sign-in through us, tokens only. */
  clientId: z.string().min(1).max(256).exactOptional(),
  /** Asked of it at sign-in. */
  requestScopes: z.array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/)).max(16),
  /** Which of its tokens says who somebody is: some issuers' access tokens are not for others to read. */
  bearer: z.enum(['access_token', 'id_token']),
  /** Where its metadata is missing or wrong. */
  endpoints: z
    .object({
      jwks: secureUrl,
      authorization: secureUrl,
      token: secureUrl,
      deviceAuthorization: secureUrl,
      revocation: secureUrl,
    })
    .partial(),
})
export type IssuerConfig = z.infer<typeof issuerSchema>

const configSchema = z.object({
  /** `local`: on one machine, reached over loopback. `open`: reached by others, so nobody is let in without an issuer. */
  mode: z.enum(['local', 'open']),
  issuers: z.array(issuerSchema).max(16).default([]),
  /** Origins of web pages that may talk to this server, as `URL.origin` spells them. */
  publicOrigins: z.array(z.string().refine(isOrigin)).max(64),
  /** Host headers that mean this server, with their port. */
  hosts: z.array(z.string().min(1)).min(1).max(64),
  /** Of the token that the host wrote for this machine's user; absent: there is no local identity. */
  localTokenSha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .exactOptional(),
  /** Idle time after which a sandbox stops unless it says otherwise. */
  sleepAfterMs: z.int().min(1_000),
  alarmMs: z.int().min(50).max(MAX_ALARM_MS),
  maxSandboxes: z.int().min(1),
  provider: z.literal('host'),
  /** `local` serves one existing folder as the only sandbox. */
  workspaceMode: z.enum(['sandboxes', 'local']),
})

/** Settings of control, decoded once per isolate. */
export type Config = z.infer<typeof configSchema> & {
  /** Name of the sandbox of an attach that names none. */
  readonly defaultName: string
}

/** Credentials and keys go there, so it is HTTPS, or this machine. */
function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  const isLoopback = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
  return (protocol === 'https:' || (protocol === 'http:' && isLoopback)) && username + password === ''
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

/** Reads the settings; throws when they are not what this version knows, since a guess could open a door. */
export function decodeConfig(text: string): Config {
  const config = configSchema.parse(JSON.parse(text))
  return config.workspaceMode === 'local'
    ? { ...config, maxSandboxes: 1, defaultName: 'local' }
    : { ...config, defaultName: 'default' }
}
