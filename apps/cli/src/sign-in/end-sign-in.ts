import { SandwireError } from '@sandwire/protocol'
import { createApi } from '../server/api.ts'
import { printable } from '../text/printable.ts'
import { type Credential, endpointsOf } from './credential.ts'

/** What came of telling somebody. */
export type Told =
  | { readonly is: 'told' }
  | { readonly is: 'notNeeded' }
  | { readonly is: 'untold'; readonly why: string }

async function tell(act: () => Promise<unknown>): Promise<Told> {
  try {
    await act()
    return { is: 'told' }
  } catch (error) {
    return { is: 'untold', why: printable(SandwireError.from(error).message) }
  }
}

async function tellIssuer({ renewal }: Credential): Promise<Told> {
  if (renewal?.refreshToken === undefined || renewal.revocationEndpoint === undefined)
    return { is: 'notNeeded' }
  const { refreshToken } = renewal
  const { explain, revokeToken } = await import('./issuer-client.ts')
  return await tell(async () => {
    try {
      await revokeToken(endpointsOf(renewal), refreshToken)
    } catch (error) {
      throw explain(error, 'Cannot withdraw the sign-in')
    }
  })
}

/** Ends a sign-in that is not in the store any more: at its server, which is shown `bearer`, and at its issuer. */
export async function endSignIn(
  credential: Credential,
  bearer: string,
): Promise<{ readonly server: Told; readonly issuer: Told }> {
  const api = createApi({ origin: credential.origin, bearer: () => Promise.resolve(bearer) })
  const server = await tell(() => api.request('POST', '/api/signout'))
  return { server, issuer: await tellIssuer(credential) }
}
