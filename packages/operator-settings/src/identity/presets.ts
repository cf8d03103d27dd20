import { SandwireError } from '@sandwire/protocol'
import {
  ISSUED_SCOPES,
  type IssuedScope,
  type IssuerAlgorithm,
  type IssuerConfig,
  isSecureUrl,
} from './issuer-config.ts'

/** An operator's settings for an issuer. The preset decides which are required. */
export interface IssuerInputs {
  /** Id in URLs; the preset's name when absent. */
  readonly id?: string
  readonly name?: string
  /** URL, exactly as in the `iss` claim. */
  readonly issuer?: string
  /** Host, and path if any. */
  readonly domain?: string
  readonly realm?: string
  readonly tenant?: string
  /** Client id. */
  readonly clientId?: string
  /** Audiences, separated by spaces. */
  readonly audience?: string
  /** Resource indicator (RFC 8707). */
  readonly resource?: string
  /** Authorization request parameters, in addition to the preset's. */
  readonly requestParameters?: Readonly<Record<string, string>>
  /** Default scopes, in place of all of them. */
  readonly defaultScopes?: readonly IssuedScope[]
  /** Scopes requested at sign-in, in addition to the preset's. */
  readonly requestScopes?: readonly string[]
  readonly bearer?: IssuerConfig['bearer']
  readonly algorithms?: readonly IssuerAlgorithm[]
}
type InputName = Exclude<
  keyof IssuerInputs,
  'requestParameters' | 'defaultScopes' | 'requestScopes' | 'bearer' | 'algorithms'
>

/** A kind of issuer. `{realm}` in a text is replaced by an input. */
export interface IssuerPreset {
  readonly name: string
  /** Required inputs. */
  readonly needs: readonly InputName[]
  readonly defaults?: Partial<Record<InputName, string>>
  readonly issuer: string
  readonly audience: string
  readonly bearer: IssuerConfig['bearer']
  readonly requestScopes: readonly string[]
  readonly requestParameters?: Readonly<Record<string, string>>
  readonly endpoints?: IssuerConfig['endpoints']
}

const PERSON = ['openid', 'profile', 'email'] as const

/** Known issuers. All use RS256 by default. */
export const ISSUER_PRESETS = {
  /** Its client uses other paths than its metadata, so they are listed here. */
  'oauth-do': {
    name: 'oauth.do',
    needs: ['audience'],
    defaults: { clientId: 'oauth_do_cli' },
    issuer: 'https://id.org.ai',
    audience: '{audience}',
    bearer: 'access_token',
    requestScopes: [...PERSON, 'offline_access'],
    endpoints: {
      jwks: 'https://id.org.ai/.well-known/jwks.json',
      deviceAuthorization: 'https://id.org.ai/oauth/device',
      token: 'https://id.org.ai/oauth/token',
    },
  },
  /** Its access tokens are opaque. */
  google: {
    name: 'Google',
    needs: ['clientId'],
    issuer: 'https://accounts.google.com',
    audience: '{clientId}',
    bearer: 'id_token',
    requestScopes: PERSON,
  },
  /** GitHub issues no ID tokens itself; a broker such as Dex does. */
  github: {
    name: 'GitHub',
    needs: ['issuer', 'clientId'],
    issuer: '{issuer}',
    audience: '{clientId}',
    bearer: 'id_token',
    requestScopes: [...PERSON, 'offline_access'],
  },
  keycloak: {
    name: 'Keycloak',
    needs: ['domain', 'realm', 'audience'],
    issuer: 'https://{domain}/realms/{realm}',
    audience: '{audience}',
    bearer: 'access_token',
    requestScopes: [...PERSON, 'offline_access'],
  },
  /** Its issuer ends in a slash, and a token has our audience only when the authorization request names it. */
  auth0: {
    name: 'Auth0',
    needs: ['domain', 'audience'],
    issuer: 'https://{domain}/',
    audience: '{audience}',
    bearer: 'access_token',
    requestScopes: [...PERSON, 'offline_access'],
    requestParameters: { audience: '{audience}' },
  },
  /** One tenant by its id: tokens of `common` have as many issuers as there are tenants. */
  entra: {
    name: 'Microsoft Entra',
    needs: ['tenant', 'audience'],
    issuer: 'https://login.microsoftonline.com/{tenant}/v2.0',
    audience: '{audience}',
    bearer: 'access_token',
    requestScopes: [...PERSON, 'offline_access', '{audience}/.default'],
  },
  okta: {
    name: 'Okta',
    needs: ['domain'],
    defaults: { audience: 'api://default', realm: 'default' },
    issuer: 'https://{domain}/oauth2/{realm}',
    audience: '{audience}',
    bearer: 'access_token',
    requestScopes: [...PERSON, 'offline_access'],
  },
  /** Any other issuer. */
  oidc: {
    name: 'Single sign-on',
    needs: ['issuer', 'audience'],
    issuer: '{issuer}',
    audience: '{audience}',
    bearer: 'access_token',
    requestScopes: [...PERSON, 'offline_access'],
  },
} as const satisfies Record<string, IssuerPreset>
export type IssuerPresetName = keyof typeof ISSUER_PRESETS

export function isIssuerPreset(text: string): text is IssuerPresetName {
  return Object.hasOwn(ISSUER_PRESETS, text)
}

/** Cause of an error about one input of an issuer. */
export class IssuerInputProblem extends Error {
  /** Name of the input, such as `audience`. */
  readonly input: string

  constructor(input: string) {
    super(`Issuer input "${input}"`)
    this.input = input
  }
}

function refuse(preset: string, why: string, input?: string): never {
  throw new SandwireError('bad_request', `Cannot use issuer "${preset}": ${why}`, {
    cause: input === undefined ? undefined : new IssuerInputProblem(input),
  })
}

/** The operator's input, or the preset's default. */
type Texts = Partial<Record<InputName, string>>

const INPUT_PATTERNS: readonly (readonly [InputName, RegExp])[] = [
  ['id', /^[a-z0-9-]{1,32}$/],
  // A path is allowed, a query or user info is not.
  ['domain', /^[A-Za-z0-9.-]+(:\d{1,5})?(\/[A-Za-z0-9._~-]+)*$/],
  ['realm', /^[A-Za-z0-9_~-][A-Za-z0-9._~-]*$/],
  ['tenant', /^[A-Za-z0-9.-]+$/],
  ['name', /^(?=.*\S).{1,64}$/],
  ['clientId', /^(?=.*\S).{1,256}$/],
  ['resource', /^[\x21-\x7e]{1,1024}$/],
]
/** Limits of the list of audiences. */
const MAX_AUDIENCES = 8
const MAX_AUDIENCE_CHARS = 256
const MAX_SCOPES = 16
/** Parameters that the sign-in sets itself; overriding them would change its recipient. */
const OWN_PARAMETERS =
  /^(client_.*|grant_type|scope|state|nonce|response_(type|mode)|redirect_uri|code_.*|code|device_code|refresh_token|token|request|request_uri)$/
const PARAMETER = /^[a-z_]{1,64}$/
const MAX_PARAMETERS = 8
/** Names of Entra that stand for several tenants. */
const MANY_TENANTS = ['common', 'organizations', 'consumers']

function checkInputs(preset: string, needs: readonly InputName[], texts: Texts): void {
  for (const name of needs)
    if ((texts[name] ?? '').trim() === '') refuse(preset, `"${name}" is missing`, name)
  for (const [name, pattern] of INPUT_PATTERNS)
    if (texts[name] !== undefined && !pattern.test(texts[name]))
      refuse(preset, `"${name}" has an invalid format`, name)
  if (texts.issuer !== undefined && !isSecureUrl(texts.issuer)) refuse(preset, '"issuer" is not an https URL')
  if (MANY_TENANTS.includes(texts.tenant ?? '')) refuse(preset, '"tenant" must name one tenant', 'tenant')
}

function checkParameters(preset: string, parameters: Readonly<Record<string, string>>): void {
  const entries = Object.entries(parameters)
  for (const [name, value] of entries) {
    if (!PARAMETER.test(name) || value.length > 1024)
      refuse(preset, '"requestParameters" has an invalid format')
    if (OWN_PARAMETERS.test(name)) refuse(preset, `"${name}" is set by Sandwire itself`)
  }
  if (entries.length > MAX_PARAMETERS) refuse(preset, '"requestParameters" are too many')
}

function fillIn(text: string, texts: Texts): string {
  const values = new Map<string, string>(Object.entries(texts))
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) => values.get(name) ?? '')
}

/** Combines a preset and the operator's input. Throws `bad_request` with the reason. */
export function issuerFromPreset(preset: string, inputs: IssuerInputs): IssuerConfig {
  if (!isIssuerPreset(preset))
    refuse(preset, `no such preset, expected one of ${Object.keys(ISSUER_PRESETS).join(', ')}`)
  const found: IssuerPreset = ISSUER_PRESETS[preset]
  const { defaultScopes, requestScopes = [], bearer, algorithms, requestParameters = {}, ...said } = inputs
  const texts: Texts = { ...found.defaults, ...said }
  checkInputs(preset, found.needs, texts)
  const audiences = fillIn(found.audience, texts).split(' ').filter(Boolean)
  const [asked = ''] = audiences
  if (asked === '') refuse(preset, '"audience" is missing', 'audience')
  if (audiences.length > MAX_AUDIENCES || audiences.some((each) => each.length > MAX_AUDIENCE_CHARS))
    refuse(preset, '"audience" is too long', 'audience')
  // The first audience is the one that is requested.
  const fill = (text: string): string => fillIn(text, { ...texts, audience: asked })
  const parameters = {
    ...mapValues(found.requestParameters ?? {}, fill),
    ...(texts.resource === undefined ? {} : { resource: texts.resource }),
    ...requestParameters,
  }
  checkParameters(preset, parameters)
  const scopes = [...new Set([...found.requestScopes.map(fill), ...requestScopes])]
  if (scopes.length > MAX_SCOPES) refuse(preset, '"requestScopes" are too many')
  return {
    id: texts.id ?? preset,
    name: texts.name ?? found.name,
    issuer: fill(found.issuer),
    audiences,
    algorithms: algorithms ?? ['RS256'],
    defaultScopes: defaultScopes ?? ISSUED_SCOPES,
    ...(texts.clientId === undefined ? {} : { clientId: texts.clientId }),
    requestScopes: scopes,
    ...(Object.keys(parameters).length === 0 ? {} : { requestParameters: parameters }),
    bearer: bearer ?? found.bearer,
    endpoints: found.endpoints ?? {},
  }
}

function mapValues(
  record: Readonly<Record<string, string>>,
  change: (text: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([name, text]) => [name, change(text)]))
}
