import {
  isIssuerPreset,
  ISSUED_SCOPES,
  ISSUER_ALGORITHMS,
  type IssuerConfig,
  issuerFromPreset,
  IssuerInputProblem,
  validateRecord,
} from '@sandwire/operator-settings'
import { schema } from '@sandwire/protocol'
import { type Environment, read } from './input.ts'
import { validateSecrets, type Secrets } from './secrets.ts'

const text = schema.text(2048, /./)
const short = { schema: schema.optional(text), expected: 'a text', fallback: undefined }
const listOf = <T>(items: schema.Schema<T>, count: number, names: string) => ({
  schema: schema.optional(schema.list(items, count)),
  expected: `a list of ${names}`,
  fallback: undefined,
})

const ISSUER_FIELDS = {
  /** A preset, or the issuer's URL exactly as in its tokens. */
  issuer: { schema: text, expected: 'a preset or the URL of an issuer' },
  /** URL for a preset that needs one, such as a broker. */
  url: short,
  domain: short,
  realm: short,
  tenant: short,
  clientId: short,
  audience: short,
  /** Resource indicator sent to the issuer (RFC 8707). */
  resource: short,
  requestParameters: {
    schema: schema.optional(schema.dictionary(8, /^[a-z_]{1,64}$/, schema.text(1024))),
    expected: 'an object of at most 8 texts',
    fallback: undefined,
  },
  id: short,
  name: short,
  defaultScopes: listOf(schema.oneOf(ISSUED_SCOPES), ISSUED_SCOPES.length, ISSUED_SCOPES.join(', ')),
  requestScopes: listOf(schema.text(128, /^[\x21\x23-\x5b\x5d-\x7e]+$/), 8, 'at most 8 scopes'),
  bearer: {
    schema: schema.optional(schema.oneOf(['access_token', 'id_token'])),
    expected: 'access_token or id_token',
    fallback: undefined,
  },
  algorithms: listOf(schema.oneOf(ISSUER_ALGORITHMS), ISSUER_ALGORITHMS.length, ISSUER_ALGORITHMS.join(', ')),
} as const

/** An issuer as the operator configures it: a preset or a URL, and the inputs that the preset needs. */
const issuerInputSchema = schema.record({
  issuer: ISSUER_FIELDS.issuer.schema,
  url: ISSUER_FIELDS.url.schema,
  domain: ISSUER_FIELDS.domain.schema,
  realm: ISSUER_FIELDS.realm.schema,
  tenant: ISSUER_FIELDS.tenant.schema,
  clientId: ISSUER_FIELDS.clientId.schema,
  audience: ISSUER_FIELDS.audience.schema,
  resource: ISSUER_FIELDS.resource.schema,
  requestParameters: ISSUER_FIELDS.requestParameters.schema,
  id: ISSUER_FIELDS.id.schema,
  name: ISSUER_FIELDS.name.schema,
  defaultScopes: ISSUER_FIELDS.defaultScopes.schema,
  requestScopes: ISSUER_FIELDS.requestScopes.schema,
  bearer: ISSUER_FIELDS.bearer.schema,
  algorithms: ISSUER_FIELDS.algorithms.schema,
})
export type IssuerInput = schema.Decoded<typeof issuerInputSchema>

/** Decodes an issuer of the settings file. Returns undefined and adds to `problems` when it is not valid. */
export function validateIssuerInput(
  where: string,
  raw: unknown,
  problems: string[],
): IssuerInput | undefined {
  return validateRecord(where, raw, ISSUER_FIELDS, problems) === undefined
    ? undefined
    : issuerInputSchema.decode(raw)
}

/** Variables that configure one issuer, and the input each one sets. */
const VARIABLES = {
  SANDWIRE_ISSUER_URL: 'url',
  SANDWIRE_ISSUER_DOMAIN: 'domain',
  SANDWIRE_ISSUER_REALM: 'realm',
  SANDWIRE_ISSUER_TENANT: 'tenant',
  SANDWIRE_ISSUER_CLIENT_ID: 'clientId',
  SANDWIRE_ISSUER_AUDIENCE: 'audience',
  SANDWIRE_ISSUER_RESOURCE: 'resource',
  SANDWIRE_ISSUER_NAME: 'name',
} as const

/** The issuer that environment variables configure, if any. */
function issuerFromEnvironment(env: Environment, problems: string[]): IssuerInput | undefined {
  const issuer = read(env, 'SANDWIRE_ISSUER')
  const set = Object.entries(VARIABLES).flatMap(([variable, key]) => {
    const text = read(env, variable)
    return text === undefined ? [] : [{ variable, key, text }]
  })
  if (issuer === undefined) {
    for (const { variable } of set.slice(0, 1))
      problems.push(`${variable} is set without SANDWIRE_ISSUER: set both, or neither`)
    return undefined
  }
  const input = issuerInputSchema.decode({
    issuer,
    ...Object.fromEntries(set.map(({ key, text }) => [key, text])),
  })
  if (input === undefined) problems.push('SANDWIRE_ISSUER cannot be used: a value is too long')
  return input
}

/** Settings of an issuer. Throws when an input is missing or not valid. */
function resolveIssuer({ issuer, url, ...inputs }: IssuerInput): IssuerConfig {
  if (isIssuerPreset(issuer))
    return issuerFromPreset(issuer, { ...inputs, ...(url !== undefined && { issuer: url }) })
  // A URL is an issuer without a preset.
  return issuerFromPreset(issuer.includes('/') ? 'oidc' : issuer, { ...inputs, issuer })
}

/** Everything that authenticates users besides the local token. */
export interface Identity {
  readonly issuers: readonly IssuerConfig[]
  readonly secrets: Secrets
  /** Certificate authorities for issuers, in addition to those of browsers; PEM. */
  readonly issuerAuthorities?: string
}

interface IdentityContext {
  readonly env: Environment
  readonly readFile: (file: string) => string | undefined
  readonly readSecretFile: (file: string) => string
}

function resolveIssuers(
  issuerInputs: readonly IssuerInput[],
  problems: string[],
  formatProblem: (error: Error) => string = ({ message }) => message,
): readonly IssuerConfig[] {
  return issuerInputs.flatMap((input) => {
    try {
      return [resolveIssuer(input)]
    } catch (error) {
      problems.push(error instanceof Error ? formatProblem(error) : 'Cannot use an issuer')
      return []
    }
  })
}

/** Adds the name of the variable to set or change. */
function withVariableName({ message, cause }: Error): string {
  const input = cause instanceof IssuerInputProblem ? cause.input : undefined
  const found = Object.entries(VARIABLES).find(([, name]) => name === input)
  return found === undefined ? message : `${message} (${found[0]})`
}

/** Two issuers with one id or URL would merge accounts of different users. */
function rejectDuplicates(issuers: readonly IssuerConfig[], problems: string[]): void {
  for (const [at, { id, issuer }] of issuers.entries()) {
    const before = issuers.slice(0, at)
    if (before.some((other) => other.id === id))
      problems.push(`Two issuers have the id "${id}": change one with "id"`)
    if (before.some((other) => other.issuer === issuer))
      problems.push(`The issuer "${issuer}" is configured twice: remove one`)
  }
}

function validateAuthorities({ env, readFile }: IdentityContext, problems: string[]): string | undefined {
  const file = env['SANDWIRE_ISSUER_CA_FILE'] ?? ''
  if (file === '') return undefined
  try {
    const text = readFile(file)
    if (text === undefined) throw new Error('no such file, or this user cannot read it')
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text
    problems.push(`SANDWIRE_ISSUER_CA_FILE is "${file}": it contains no PEM certificate`)
  } catch (error) {
    problems.push(
      `SANDWIRE_ISSUER_CA_FILE is "${file}": ${error instanceof Error ? error.message : 'not readable'}`,
    )
  }
  return undefined
}

/** Validates issuers from variables and the settings file, and secrets. */
export function validateIdentity(
  context: IdentityContext,
  issuerInputs: readonly IssuerInput[],
  problems: string[],
): Identity {
  const input = issuerFromEnvironment(context.env, problems)
  const issuers = [
    ...resolveIssuers(input === undefined ? [] : [input], problems, withVariableName),
    ...resolveIssuers(issuerInputs, problems),
  ]
  rejectDuplicates(issuers, problems)
  const secrets = validateSecrets(context.env, context.readSecretFile, problems)
  const issuerAuthorities = validateAuthorities(context, problems)
  return { issuers, secrets, ...(issuerAuthorities !== undefined && { issuerAuthorities }) }
}

/** True when users other than this machine's can authenticate. */
export function hasIdentity({ issuers, secrets }: Identity): boolean {
  return issuers.length > 0 || secrets.jwtSecret !== undefined || secrets.apiToken !== undefined
}

/** Names of the issuers and secrets, for the start message. */
export function listIdentities({ issuers, secrets }: Identity): readonly string[] {
  return [
    ...issuers.map(({ name, issuer }) => `${name} (${issuer})`),
    ...(secrets.jwtSecret === undefined ? [] : ['service tokens']),
    ...(secrets.apiToken === undefined ? [] : ['the API token']),
  ]
}
