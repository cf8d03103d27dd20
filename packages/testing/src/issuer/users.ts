/** Sandwire's scopes, in the issuer's notation. */
export const SANDBOX_SCOPES = ['sandbox:connect', 'sandbox:exec', 'sandbox:admin'] as const
export type SandboxScope = (typeof SANDBOX_SCOPES)[number]

export interface TestUser {
  readonly name: string
  readonly email: string
  /** The scopes that its tokens may have. */
  readonly scopes: readonly SandboxScope[]
}

/** The default users: `ann` and `bob` share sandboxes, `eve` has access to none of theirs. */
export const TEST_USERS: Readonly<Record<string, TestUser>> = {
  ann: { name: 'Ann Archer', email: 'ann@example.test', scopes: SANDBOX_SCOPES },
  bob: { name: 'Bob Baker', email: 'bob@example.test', scopes: SANDBOX_SCOPES },
  eve: { name: 'Eve Evans', email: 'eve@example.test', scopes: SANDBOX_SCOPES },
}
