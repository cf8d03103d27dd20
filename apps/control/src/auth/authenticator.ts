import { type Role, SandwireError } from '@sandwire/protocol'

/**
 * What a credential may be used for at all; what its person may do in which sandbox is another question. `connect`: see and
 * join. `exec`: run any command. `admin`: make, share, stop and destroy. `operator`: look after the server; no issuer gives it.
 */
export const SCOPES = ['connect', 'exec', 'admin', 'operator'] as const
export type Scope = (typeof SCOPES)[number]

/** The one upgrade that a ticket is good for. */
export interface TicketBinding {
  readonly sandbox: string
  /** Absent: it starts a process. */
  readonly session?: string
  readonly role: Role
}

/** Who asks, and how that is known. */
export interface Identity {
  /** Account it acts for: `local`, or made of issuer and subject. */
  readonly account: string
  /** What the people it shares with see of it. */
  readonly name: string
  readonly scopes: readonly Scope[]
  /** A cookie is sent by the browser on its own, so it needs proof of where the request comes from. */
  readonly via: 'bearer' | 'cookie' | 'ticket'
  /** Sign-in that the credential comes from; signing out ends what hangs on it. */
  readonly login?: string
  /** The very token, where its issuer does not say which sign-in it comes from: `login` then stands for all such tokens. */
  readonly token?: string
  /** When the credential was issued, if it says so. */
  readonly issuedMs?: number
  /** When the credential ends; absent when it does not. */
  readonly expiresMs?: number
  readonly ticket?: TicketBinding
}

/** Finds out who asks. Undefined: this kind of credential is not there. Throws when it is there and not accepted. */
export interface Authenticator {
  authenticate(headers: Headers): Promise<Identity | undefined>
}

/** The first authenticator that finds its credential decides. */
export function firstOf(authenticators: readonly Authenticator[]): Authenticator {
  return {
    async authenticate(headers) {
      for (const authenticator of authenticators) {
        const identity = await authenticator.authenticate(headers)
        if (identity !== undefined) return identity
      }
      return undefined
    },
  }
}

export function notAccepted(why: string): SandwireError {
  return new SandwireError('unauthorized', `Cannot authenticate: ${why}`)
}

/** Its sign-in or its account was ended. Programs look for these words: a sign-in after that counts only when clocks agree on it. */
export function signInEnded(): SandwireError {
  return notAccepted('the sign-in has ended')
}
