import {
  findEmbedOriginProblem,
  ISSUED_SCOPES,
  ISSUER_ALGORITHMS,
  type IssuerConfig,
  isSecureUrl,
  type CeilingSettings,
  type CommandSettings,
  type CredentialSettings,
  validateCeilingSettings,
  validateCommandSettings,
  type RunSettings,
  validateCredentialSettings,
  validateRunSettings,
  MAX_EMBED_ORIGINS,
} from '@sandwire/operator-settings'
import { z } from 'zod'
import type { MachineFacts } from './ceilings/ceilings.ts'
import { conversationSettingsSchema } from './conversation/settings.ts'
import { CODINGS } from './http/content-coding.ts'
import { MAX_TICKET_MS } from './sandbox/tickets.ts'
import { sessionSettingsSchema } from './session-settings.ts'
import { MAX_AUTOMATIC_VERSIONS, MAX_CHECKPOINT_DAYS, type RetentionSettings } from './versions/retention.ts'
import type { S3Settings } from './versions/s3-settings.ts'
import { completeLimits, type Limits, limitsSchema, integer } from './limits.ts'

export type { IssuerConfig }

/** Longest time between two checks of a running sandbox. */
const MAX_ALARM_MS = 60_000
/** Longest timer. */
const MAX_MS = 2 ** 31 - 1
const MAX_SANDBOXES = 1_000_000

const machineSchema = z.strictObject({
  memoryBytes: integer(1, Number.MAX_SAFE_INTEGER),
  milliCpus: integer(1, Number.MAX_SAFE_INTEGER),
  pids: integer(1, Number.MAX_SAFE_INTEGER),
  diskBytes: integer(1, Number.MAX_SAFE_INTEGER),
  diskOvercommit: z.number().min(1).max(1_000),
  storeBytes: integer(1, Number.MAX_SAFE_INTEGER).exactOptional(),
}) satisfies z.ZodType<MachineFacts>

const secureUrl = z.string().refine(isSecureUrl, 'expected an https URL')

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

const origin = z.string().refine(isOrigin, 'expected an origin, such as https://sandwire.example')

const s3Schema = z.strictObject({
  endpoint: secureUrl,
  region: z.string().regex(/^[a-z0-9-]{1,32}$/),
  bucket: z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/),
  prefix: z.string().regex(/^[A-Za-z0-9._/-]{0,512}$/),
}) satisfies z.ZodType<S3Settings>

const spritesSchema = z.strictObject({
  baseUrl: secureUrl,
  /** The one sprite, which then is the one sandbox; absent: each sandbox has a sprite of its own. */
  spriteName: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/)
    .exactOptional(),
  service: z.strictObject({
    host: z.enum(['localhost', '127.0.0.1']),
    port: integer(1, 65_535),
    path: z.string().regex(/^(?:\/[A-Za-z0-9._~-]{1,64}){0,8}$/),
  }),
  program: z.strictObject({ url: secureUrl, sha256: z.string().regex(/^[0-9a-f]{64}$/) }).exactOptional(),
})

const retentionSchema = z.strictObject({
  automaticVersions: integer(1, MAX_AUTOMATIC_VERSIONS).exactOptional(),
  checkpointDays: integer(1, MAX_CHECKPOINT_DAYS).nullable().exactOptional(),
}) satisfies z.ZodType<RetentionSettings>

const configSchema = z.strictObject({
  /** `local`: on one machine, over loopback. `open`: reachable by others, so it needs a way to authenticate them. */
  mode: z.enum(['local', 'open'], 'expected local or open'),
  /** Ids and `iss` values are unique, so that a token belongs to one issuer. */
  issuers: z
    .array(issuerSchema)
    .max(16)
    .refine(areDistinct, 'expected each id and each issuer once')
    .default([]),
  /** Origins of this server's own pages, as in `URL.origin`. */
  publicOrigins: z.array(origin).max(64),
  /** Origins of other sites, which may open terminals with a ticket and nothing else. */
  embedOrigins: z.array(z.string().superRefine(refuseEmbedOrigin)).max(MAX_EMBED_ORIGINS).default([]),
  /** `Host` headers of this server, with port. */
  hosts: z.array(z.string().min(1)).min(1).max(64),
  /**
   * Names of a local server that no other program shares, since browsers send cookies to every port of a host. Its owner signs in
   * with a code only under one, and guests get cookies only under the other. Absent: under every public origin.
   */
  privateOrigins: z.strictObject({ owner: origin, guests: origin }).exactOptional(),
  /** Control terminates TLS itself, instead of a proxy. */
  hasTls: z.boolean('expected true or false').default(false),
  /** Header in which a proxy on this machine sends the client's address; absent: no proxy is trusted. */
  clientAddressHeader: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/)
    .exactOptional(),
  /** Hash of the local token; absent: no local identity. */
  localTokenSha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .exactOptional(),
  /** Default idle time after which a sandbox stops. */
  sleepAfterMs: integer(1_000, MAX_MS),
  alarmMs: integer(50, MAX_ALARM_MS),
  /** Sandboxes of an account, unless the operator sets that ceiling. */
  maxSandboxes: integer(1, MAX_SANDBOXES),
  /** Lifetime of a ticket. */
  ticketMs: integer(1, MAX_TICKET_MS).default(MAX_TICKET_MS),
  limits: limitsSchema.prefault({}),
  /** The operator's ceilings. */
  ceilings: z.unknown().transform(toCeilings).prefault({}),
  /** What the machine has; absent: not known. */
  machine: machineSchema.exactOptional(),
  /** Which versions are kept, unless an account or a sandbox has settings of its own. */
  retention: retentionSchema.prefault({}),
  sessions: sessionSettingsSchema.prefault({}),
  /** Runs of coding agents. */
  runs: z.unknown().prefault({}),
  /** Conversations with coding agents. */
  conversations: conversationSettingsSchema.prefault({}),
  /** Origins of other sites whose pages may use conversations, with a bearer token or a service's cookie. */
  conversationOrigins: z.array(z.string().superRefine(refuseEmbedOrigin)).max(MAX_EMBED_ORIGINS).default([]),
  /** Command templates and restrictions. */
  commands: z.unknown().transform(toCommands).prefault({}),
  /** What the credential gateway adds to requests of agents. */
  credentials: z.unknown().transform(toCredentials).prefault({}),
  /** Accept a bearer token in the URL of an attach, for clients that cannot set headers. */
  tokenInUrl: z.boolean('expected true or false').default(false),
  /** Lifetime of a session token. */
  sessionTokenMinutes: integer(15, 60).default(60),
  provider: z.enum(['host', 'container', 'sprites'], 'expected host, container or sprites'),
  /** Fly Sprites, for the provider `sprites`. */
  sprites: spritesSchema.exactOptional(),
  /** `local` serves one existing folder as the only sandbox. */
  workspaceMode: z.enum(['sandboxes', 'local'], 'expected sandboxes or local'),
  /** The bucket of an S3-compatible service in which versions are stored. */
  s3: s3Schema.exactOptional(),
  /** Content codings for which the workbench has compressed copies; none if a proxy compresses. */
  assetCodings: z.array(z.enum(CODINGS)).max(CODINGS.length).default([]),
})

/** Settings of control, decoded once per isolate. */
export type Config = Omit<z.infer<typeof configSchema>, 'limits' | 'runs'> & {
  readonly limits: Limits
  readonly runs: RunSettings
  /** Name of the default sandbox. */
  readonly defaultName: string
  /** The server has one sandbox, of the local account: a served folder, or the operator's sprite. */
  readonly hasOneSandbox: boolean
}

function areDistinct(issuers: readonly IssuerConfig[]): boolean {
  const count = (of: (issuer: IssuerConfig) => string): number => new Set(issuers.map(of)).size
  return count(({ id }) => id) === issuers.length && count(({ issuer }) => issuer) === issuers.length
}

/** Reports every problem, with the host's texts. */
function toCommands(raw: unknown, context: z.RefinementCtx): CommandSettings {
  const problems: string[] = []
  const settings = validateCommandSettings(raw, problems)
  for (const problem of problems) context.addIssue(problem)
  return settings
}

function toCeilings(raw: unknown, context: z.RefinementCtx): CeilingSettings {
  const problems: string[] = []
  const settings = validateCeilingSettings(raw, problems)
  for (const problem of problems) context.addIssue(problem)
  return settings
}

function toCredentials(raw: unknown, context: z.RefinementCtx): CredentialSettings {
  const problems: string[] = []
  const settings = validateCredentialSettings(raw, problems)
  for (const problem of problems) context.addIssue(problem)
  return settings
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

function refuseEmbedOrigin(text: string, context: z.RefinementCtx): void {
  const problem = findEmbedOriginProblem(text)
  if (problem !== undefined) context.addIssue(problem)
}

/** Names the setting and what is expected, never its value. */
function describeIssue(issue: z.core.$ZodIssue): readonly string[] {
  const { path, message } = issue
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => `${[...path, key].join('.')}: unknown`)
  return [`${path.join('.')}: ${message}`]
}

/** Decodes the settings; throws on anything unknown, because ignoring it could weaken security. */
export function decodeConfig(text: string): Config {
  const result = configSchema.safeParse(JSON.parse(text))
  if (!result.success) {
    const problems = result.error.issues.flatMap(describeIssue)
    throw new Error(`Invalid settings: ${problems.join('; ')}`)
  }
  const parsed = result.data
  const problems: string[] = []
  const runs = validateRunSettings(parsed.runs, parsed.credentials, problems)
  if (problems.length > 0) throw new Error(`Invalid settings: ${problems.join('; ')}`)
  const config = { ...parsed, limits: completeLimits(parsed.limits, parsed.mode), runs }
  if (config.provider === 'sprites' && config.sprites === undefined)
    throw new Error('Invalid settings: sprites: required by the provider')
  if (config.sprites?.spriteName !== undefined && (config.mode === 'open' || config.issuers.length > 0))
    throw new Error('Invalid settings: sprites.spriteName: one sprite cannot serve several accounts')
  const isFolder = config.workspaceMode === 'local'
  const hasOneSandbox = isFolder || config.sprites?.spriteName !== undefined
  return {
    ...config,
    hasOneSandbox,
    ...(hasOneSandbox && { maxSandboxes: 1 }),
    defaultName: isFolder ? 'local' : 'default',
  }
}
