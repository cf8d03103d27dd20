import type { ReactElement } from 'react'

/** For who is not signed in. */
export function SignedOut(): ReactElement {
  return (
    <main className="boot">
      <h1>Sandwire</h1>
      <p>You are not signed in.</p>
      <a className="button primary" href="/signin">
        Sign in
      </a>
    </main>
  )
}
