import { SandwireError } from '@sandwire/protocol'

/** Who asks, and how that is known. */
export interface Identity {
  /** Account it acts for. */
  readonly account: string
  /** A cookie is sent by the browser on its own, so it needs proof of where the request comes from. */
  readonly via: 'bearer' | 'cookie'
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
