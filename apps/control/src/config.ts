import {
  findEmbedOriginProblem,
  ISSUED_SCOPES,
  ISSUER_ALGORITHMS,
  type IssuerConfig,
  isSecureUrl,
  type CommandSettings,
  validateCommandSettings,
  MAX_EMBED_ORIGINS,
} from '@sandwire/operator-settings'
import { z } from 'zod'
import { CODINGS } from './http/content-coding.ts'
import { MAX_TICKET_MS } from './sandbox/tickets.ts'
import { completeLimits, type Limits, limitsSchema, whole } from './limits.ts'

export type { IssuerConfig }

/** Longest time between two looks at a running sandbox. */
const MAX_ALARM_MS = 60_000
/** What fits in a timer. */
const MAX_MS = 2 ** 31 - 1
const MAX_SANDBOXES = 1_000_000

const secureUrl = z.string().refine(isSecureUrl, 'expected an https URL')

/** As `IssuerConfig` says, which host and control share. */
const issuerSchema = z.strictObject({
  id: z.string().regex(/^[a-z0-9-]{1,32}$/),
  name: z.string().min(1).max(64),
  issuer: secureUrl,
  audiences: z.array(z.string().min(1).max(256)).min(1).max(8),
  algorithms: z.array(z.enum(ISSUER_ALGORITHMS)).min(1),
  defaultScopes: z.array(z.enum(ISSUED_SCOPES)).max(ISSUED_SCOPES.length),
  clientId: z.string().min(1).max(256).exactOptional(),
  requestScopes: z.array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/)).max(16),
  requestParameters: z.record(z.string().regex(/^[a-z_]{1,64}$/), z.string().max(1024)).exactOptional(),
  bearer: z.enum(['access_token', 'id_token']),
  endpoints: z.object({
    jwks: secureUrl.exactOptional(),
    authorization: secureUrl.exactOptional(),
    token: secureUrl.exactOptional(),
    deviceAuthorization: secureUrl.exactOptional(),
    revocation: secureUrl.exactOptional(),
  }),
}) satisfies z.ZodType<IssuerConfig>

const configSchema = z.strictObject({
  /** `local`: on one machine, reached over loopback. `open`: reached by others, so nobody is let in without an issuer. */
  mode: z.enum(['local', 'open'], 'expected local or open'),
  /** Each by its own id and its own `iss`: a token must lead to one of them. */
  issuers: z
    .array(issuerSchema)
    .max(16)
    .refine(areDistinct, 'expected each id and each issuer once')
    .default([]),
  /** Origins of web pages that may talk to this server, as `URL.origin` spells them. */
  publicOrigins: z
    .array(z.string().refine(isOrigin, 'expected an origin, such as https://sandwire.example'))
    .max(64),
  /** Origins whose pages may open terminals with a ticket, and do nothing else. */
  embedOrigins: z.array(z.string().superRefine(refuseEmbedOrigin)).max(MAX_EMBED_ORIGINS).default([]),
  /** Host headers that mean this server, with their port. */
  hosts: z.array(z.string().min(1)).min(1).max(64),
  /** Where a proxy on this machine says who is behind it; absent: there is none, and nobody is believed. */
  clientAddressHeader: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/)
    .exactOptional(),
  /** Of the token that the host wrote for this machine's user; absent: there is no local identity. */
  localTokenSha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .exactOptional(),
  /** Idle time after which a sandbox stops unless it says otherwise. */
  sleepAfterMs: whole(1_000, MAX_MS),
  alarmMs: whole(50, MAX_ALARM_MS),
  maxSandboxes: whole(1, MAX_SANDBOXES),
  /** How long a ticket lives. */
  ticketMs: whole(1, MAX_TICKET_MS).default(MAX_TICKET_MS),
  limits: limitsSchema.prefault({}),
  /** What may be run. */
  commands: z.unknown().transform(toCommands).prefault({}),
  /** Whether clients that can set no header may put their bearer into the URL of an attach. */
  tokenInUrl: z.boolean('expected true or false').default(false),
  /** How long a session token lives. */
  sessionTokenMinutes: whole(15, 60).default(60),
  provider: z.enum(['host', 'container'], 'expected host or container'),
  /** `local` serves one existing folder as the only sandbox. */
  workspaceMode: z.enum(['sandboxes', 'local'], 'expected sandboxes or local'),
  /** Codings that the workbench's files lie beside themselves in; none where what is in front of us makes them. */
  assetCodings: z.array(z.enum(CODINGS)).max(CODINGS.length).default([]),
})

/** Settings of control, decoded once per isolate. */
export type Config = Omit<z.infer<typeof configSchema>, 'limits'> & {
  readonly limits: Limits
  /** Name of the sandbox of an attach that names none. */
  readonly defaultName: string
}

function areDistinct(issuers: readonly IssuerConfig[]): boolean {
  const count = (of: (issuer: IssuerConfig) => string): number => new Set(issuers.map(of)).size
  return count(({ id }) => id) === issuers.length && count(({ issuer }) => issuer) === issuers.length
}

/** Says all that is wrong at once, in the words that the host uses. */
function toCommands(raw: unknown, context: z.RefinementCtx): CommandSettings {
  const problems: string[] = []
  const settings = validateCommandSettings(raw, problems)
  for (const problem of problems) context.addIssue(problem)
  return settings
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

function refuseEmbedOrigin(text: string, context: z.RefinementCtx): void {
  const fault = findEmbedOriginProblem(text)
  if (fault !== undefined) context.addIssue(fault)
}

/** Names the setting and what it may be; never its value. */
function describeIssue(issue: z.core.$ZodIssue): readonly string[] {
  const { path, message } = issue
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => `${[...path, key].join('.')}: unknown`)
  return [`${path.join('.')}: ${message}`]
}

/** Reads the settings; throws when they are not what this version knows, since a guess could open a door. */
export function decodeConfig(text: string): Config {
  const judged = configSchema.safeParse(JSON.parse(text))
  if (!judged.success) {
    const problems = judged.error.issues.flatMap(describeIssue)
    throw new Error(`Cannot use the settings: ${problems.join('; ')}`)
  }
  const parsed = judged.data
  const config = { ...parsed, limits: completeLimits(parsed.limits, parsed.mode) }
  return config.workspaceMode === 'local'
    ? { ...config, maxSandboxes: 1, defaultName: 'local' }
    : { ...config, defaultName: 'default' }
}
