import {
  ISSUED_SCOPES,
  ISSUER_ALGORITHMS,
  type IssuerConfig,
  issuerFromPreset,
  isIssuerPreset,
  judgeRecord,
} from '@sandwire/operator-settings'
import { shape } from '@sandwire/protocol'
import { type Environment, read } from './environment.ts'

const text = shape.text(2048, /./)
const short = { shape: shape.optional(text), expected: 'a text', fallback: undefined }
const listOf = <T>(items: shape.Shape<T>, count: number, names: string) => ({
  shape: shape.optional(shape.list(items, count)),
  expected: `a list of ${names}`,
  fallback: undefined,
})

const WISH = {
  /** A preset, or the issuer's URL to the letter as its tokens say it. */
  issuer: { shape: text, expected: 'a preset or the URL of an issuer' },
  /** URL behind a preset that needs one, such as a broker. */
  url: short,
  domain: short,
  realm: short,
  tenant: short,
  clientId: short,
  audience: short,
  /** What a token is asked for, where the issuer has to be told (RFC 8707). */
  resource: short,
  requestParameters: {
    shape: shape.optional(shape.dictionary(8, /^[a-z_]{1,64}$/, shape.text(1024))),
    expected: 'an object of at most 8 texts',
    fallback: undefined,
  },
  id: short,
  name: short,
  defaultScopes: listOf(shape.oneOf(ISSUED_SCOPES), ISSUED_SCOPES.length, ISSUED_SCOPES.join(', ')),
  requestScopes: listOf(shape.text(128, /^[\x21\x23-\x5b\x5d-\x7e]+$/), 8, 'at most 8 scopes'),
  bearer: {
    shape: shape.optional(shape.oneOf(['access_token', 'id_token'])),
    expected: 'access_token or id_token',
    fallback: undefined,
  },
  algorithms: listOf(shape.oneOf(ISSUER_ALGORITHMS), ISSUER_ALGORITHMS.length, ISSUER_ALGORITHMS.join(', ')),
} as const

/** An issuer as an operator writes it down: a preset or a URL, and what only this installation can know. */
const wishShape = shape.record({
  issuer: WISH.issuer.shape,
  url: WISH.url.shape,
  domain: WISH.domain.shape,
  realm: WISH.realm.shape,
  tenant: WISH.tenant.shape,
  clientId: WISH.clientId.shape,
  audience: WISH.audience.shape,
  resource: WISH.resource.shape,
  requestParameters: WISH.requestParameters.shape,
  id: WISH.id.shape,
  name: WISH.name.shape,
  defaultScopes: WISH.defaultScopes.shape,
  requestScopes: WISH.requestScopes.shape,
  bearer: WISH.bearer.shape,
  algorithms: WISH.algorithms.shape,
})
export type IssuerWish = shape.Decoded<typeof wishShape>

/** Decodes an issuer of the settings file; undefined with every reason added to `problems`. */
export function judgeWish(where: string, raw: unknown, problems: string[]): IssuerWish | undefined {
  return judgeRecord(where, raw, WISH, problems) === undefined ? undefined : wishShape.decode(raw)
}

/** What the one issuer that variables can name is made of. */
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

/** What is wrong with the issuer that variables name, with the variable to set or change. */
export function nameVariable(problem: string): string {
  const found = Object.entries(VARIABLES).find(([, key]) => problem.includes(`: "${key}" `))
  return found === undefined ? problem : `${problem} (${found[0]})`
}

/** The issuer that variables name, if they do. */
export function wishFromEnvironment(env: Environment, problems: string[]): IssuerWish | undefined {
  const issuer = read(env, 'SANDWIRE_ISSUER')
  const set = Object.entries(VARIABLES).flatMap(([variable, key]) => {
    const text = read(env, variable)
    return text === undefined ? [] : [{ variable, key, text }]
  })
  if (issuer === undefined) {
    for (const { variable } of set.slice(0, 1))
      problems.push(`${variable} is set without SANDWIRE_ISSUER: set that too, or unset it`)
    return undefined
  }
  const wish = wishShape.decode({
    issuer,
    ...Object.fromEntries(set.map(({ key, text }) => [key, text])),
  })
  if (wish === undefined) problems.push('SANDWIRE_ISSUER cannot be used: something of it is too long')
  return wish
}

/** Settings of a wished issuer. Throws with the reason when the wish is not complete or not sound. */
export function grantWish({ issuer, url, ...inputs }: IssuerWish): IssuerConfig {
  if (isIssuerPreset(issuer))
    return issuerFromPreset(issuer, { ...inputs, ...(url !== undefined && { issuer: url }) })
  // Whoever writes an address means that issuer, and nothing is known about it.
  return issuerFromPreset(issuer.includes('/') ? 'oidc' : issuer, { ...inputs, issuer })
}
