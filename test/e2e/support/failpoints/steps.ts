/** Methods of control's objects that report themselves, by object and name. */
export const OBJECT_STEPS = [
  'account.claim',
  'account.reserveStart',
  'account.remove',
  'account.addHeldGrant',
  'account.removeHeldGrant',
  'sandbox.grant',
  'sandbox.redeemGrant',
  'sandbox.revokeGrant',
] as const
