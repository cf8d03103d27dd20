import type { Config } from '../config.ts'
import type { SignIn } from './browser-cookie.ts'
import { isGuestLogin } from './guest-name.ts'
import { isVouchedFor } from './voucher.ts'

type Settings = Pick<Config, 'mode' | 'localTokenSha256' | 'issuers'>

/** On one machine, without issuers, people can come for a link without a sign-in of their own. */
export function hasGuests({ mode, localTokenSha256, issuers }: Settings): boolean {
  return mode === 'local' && localTokenSha256 !== undefined && issuers.length === 0
}

/** Whether who said who somebody is, is still believed. */
export function isTrustedSignIn(
  signIn: Pick<SignIn, 'login' | 'issuer' | 'voucher'>,
  settings: Settings,
): boolean {
  if (isGuestLogin(signIn.login)) return hasGuests(settings)
  const hasLocalIdentity = settings.localTokenSha256 !== undefined
  return isVouchedFor(signIn, { issuers: settings.issuers, hasLocalIdentity })
}
