/** What a token of ours may be good for, as the issuer spells it. */
export const SANDBOX_SCOPES = ['sandbox:connect', 'sandbox:exec', 'sandbox:admin'] as const
export type SandboxScope = (typeof SANDBOX_SCOPES)[number]

export interface Person {
  readonly name: string
  readonly email: string
  /** What its tokens may be good for at most. */
  readonly scopes: readonly SandboxScope[]
}

/** Who may sign in when a test does not say: two who share, and one who should get nothing of theirs. */
export const PEOPLE: Readonly<Record<string, Person>> = {
  ann: { name: 'Ann Archer', email: 'ann@example.test', scopes: SANDBOX_SCOPES },
  bob: { name: 'Bob Baker', email: 'bob@example.test', scopes: SANDBOX_SCOPES },
  eve: { name: 'Eve Evans', email: 'eve@example.test', scopes: SANDBOX_SCOPES },
}
