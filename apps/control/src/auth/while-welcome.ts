import { type Authenticator, type Identity, signInEnded } from './authenticator.ts'

/** Asks the account whether a token that is good by itself was ended by a sign-out or a deletion. */
export type IsWelcome = (
  account: string,
  dated: { readonly login: string; readonly issuedMs?: number },
) => Promise<boolean>

/** Accepts what another accepts, unless its account ended it. A credential without a sign-in has nothing that can end. */
export function whileWelcome(inner: Authenticator, isWelcome: IsWelcome): Authenticator {
  const check = async ({ account, login, token = login, issuedMs }: Identity): Promise<void> => {
    if (token === undefined) return
    if (!(await isWelcome(account, { login: token, ...(issuedMs === undefined ? {} : { issuedMs }) })))
      throw signInEnded()
  }
  return {
    async authenticate(headers) {
      const identity = await inner.authenticate(headers)
      if (identity !== undefined) await check(identity)
      return identity
    },
  }
}
