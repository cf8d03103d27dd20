import type { ReactElement } from 'react'

/** For who is not signed in, or not any more. */
export function SignedOut({ hasUnsaved }: { readonly hasUnsaved: boolean }): ReactElement {
  return (
    <main className="boot">
      <h1>Sandwire</h1>
      <p>You are not signed in.</p>
      {hasUnsaved && (
        <p>
          This page still holds changes that were not saved. Sign in in another tab and come back here to keep
          them.
        </p>
      )}
      {/* Leaving this page would lose what is not saved. */}
      <a className="button primary" href="/signin" target={hasUnsaved ? '_blank' : undefined} rel="noopener">
        Sign in
      </a>
    </main>
  )
}
