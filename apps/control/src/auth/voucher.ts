import type { IssuerConfig } from '@sandwire/operator-settings'

type Issuer = Pick<IssuerConfig, 'issuer' | 'clientId'>

/** Who says who somebody is, and to which client of ours. The id of an issuer is only its place in the settings. */
export function voucherOf({ issuer, clientId }: Issuer): string {
  return JSON.stringify([issuer, clientId ?? null])
}

/** What a sign-in hangs on: the issuer that vouched for it, or, where none did, this machine's own identity. */
export interface Vouched {
  readonly issuer: string | null
  readonly voucher: string | null
}

/** Whether a sign-in comes from somebody who is believed now. */
export function isVouchedFor(
  { issuer, voucher }: Vouched,
  settings: { readonly issuers: readonly Issuer[]; readonly hasLocalIdentity: boolean },
): boolean {
  if (issuer === null) return settings.hasLocalIdentity
  return settings.issuers.some((known) => voucherOf(known) === voucher)
}
