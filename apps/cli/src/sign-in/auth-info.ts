import { SandwireError, shape } from '@sandwire/protocol'
import { openRecord, decodeResponse } from '../server/response.ts'
import { UsageError } from '../options/words.ts'
import { isSecureUrl } from '../server/address.ts'

const address: shape.Shape<string> = {
  decode: (value) =>
    typeof value === 'string' && value.length <= 2048 && isSecureUrl(value) ? value : undefined,
  describe: 'secure url',
}
const word = shape.text(256, /^[\x21-\x7e]+$/)

/** Parameters that this program sets itself are not the server's to set. */
const PARAMETER = /^(?!client_|grant_type$|scope$|device_code$|refresh_token$|token$)[a-z_]{1,64}$/

const issuerShape = openRecord({
  /** Names it on the command line. */
  id: shape.text(32, /^[a-z0-9-]+$/),
  /** As people know it. */
  name: shape.text(64),
  issuer: address,
  /** Our client there; none: tokens of it are taken, but nobody signs in through us. */
  clientId: shape.optional(shape.nullable(word)),
  requestScopes: shape.list(shape.text(128, /^[\x21\x23-\x5b\x5d-\x7e]+$/), 16),
  bearer: shape.oneOf(['access_token', 'id_token']),
  /** Sent along when a sign-in begins; some issuers must be told so what a token is for. */
  requestParameters: shape.optional(shape.dictionary(8, PARAMETER, shape.text(1024))),
  /** Where its metadata is missing or wrong. */
  endpoints: shape.optional(
    openRecord({
      token: shape.optional(address),
      deviceAuthorization: shape.optional(address),
      revocation: shape.optional(address),
    }),
  ),
})
const authShape = openRecord({ issuers: shape.list(issuerShape, 16) })

/** Somebody who says who people are, as a server describes it. */
export type IssuerInfo = shape.Decoded<typeof issuerShape>
/** One that people can sign in with. */
export type SignInIssuer = IssuerInfo & { readonly clientId: string }

/** Reads what `GET /api/auth` answers. Throws when it is not understood, or when an address in it is not safe to use. */
export function decodeAuth(answer: unknown): readonly IssuerInfo[] {
  return decodeResponse(authShape, answer).issuers
}

/** The issuer to sign in with: the one that was asked for, or the only one. */
export function selectIssuer(issuers: readonly IssuerInfo[], asked: string | undefined): SignInIssuer {
  const usable = issuers.flatMap(({ clientId, ...rest }) =>
    clientId === undefined || clientId === null ? [] : [{ ...rest, clientId }],
  )
  const [first, second] = usable
  if (first === undefined)
    throw new SandwireError('no_issuer', 'Cannot sign in: the server has no issuer for it')
  const ids = usable.map(({ id }) => id).join(', ')
  if (asked === undefined && second !== undefined)
    throw new UsageError(`There are several issuers: ${ids}`, `choose one with --issuer ${first.id}`)
  const found = asked === undefined ? first : usable.find(({ id }) => id === asked)
  if (found === undefined) throw new UsageError(`There is no such issuer; there are: ${ids}`)
  return found
}
