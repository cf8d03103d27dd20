import { SandwireError, schema } from '@sandwire/protocol'
import { looseObject, decodeResponse } from '../server/response.ts'
import { UsageError } from '../errors/errors.ts'
import { isSecureUrl } from '../server/address.ts'

const address: schema.Schema<string> = {
  decode: (value) =>
    typeof value === 'string' && value.length <= 2048 && isSecureUrl(value) ? value : undefined,
  describe: 'secure url',
}
const printableText = schema.text(256, /^[\x21-\x7e]+$/)

/** The server may not set parameters that the CLI sets itself. */
const PARAMETER = /^(?!client_|grant_type$|scope$|device_code$|refresh_token$|token$)[a-z_]{1,64}$/

const issuerSchema = looseObject({
  /** Value of `--issuer`. */
  id: schema.text(32, /^[a-z0-9-]+$/),
  name: schema.text(64),
  issuer: address,
  /** Absent: the server accepts tokens of this issuer, but has no client to sign in with. */
  clientId: schema.optional(schema.nullable(printableText)),
  requestScopes: schema.list(schema.text(128, /^[\x21\x23-\x5b\x5d-\x7e]+$/), 16),
  bearer: schema.oneOf(['access_token', 'id_token']),
  /** Sent with the device authorization request, such as `resource`. */
  requestParameters: schema.optional(schema.dictionary(8, PARAMETER, schema.text(1024))),
})
const authSchema = looseObject({ issuers: schema.list(issuerSchema, 16) })

/** An issuer, as a server describes it. */
export type IssuerInfo = schema.Decoded<typeof issuerSchema>
/** An issuer with a client to sign in with. */
export type SignInIssuer = IssuerInfo & { readonly clientId: string }

/** Decodes the response of `GET /api/auth`. Throws if the address of an issuer is not secure. */
export function decodeAuth(response: unknown): readonly IssuerInfo[] {
  return decodeResponse(authSchema, response).issuers
}

/** The issuer with this id, or the only one. */
export function selectIssuer(issuers: readonly IssuerInfo[], id: string | undefined): SignInIssuer {
  const usable = issuers.flatMap(({ clientId, ...rest }) =>
    clientId === undefined || clientId === null ? [] : [{ ...rest, clientId }],
  )
  const [first, second] = usable
  if (first === undefined) throw new SandwireError('no_issuer', 'Cannot sign in: the server has no issuer')
  const ids = usable.map(({ id }) => id).join(', ')
  if (id === undefined && second !== undefined)
    throw new UsageError(`The server has several issuers: ${ids}`, `choose one with --issuer ${first.id}`)
  const found = id === undefined ? first : usable.find((issuer) => issuer.id === id)
  if (found === undefined) throw new UsageError(`No such issuer; the server has: ${ids}`)
  return found
}
