import type { ReactElement } from 'react'
import { shellTexts } from '../texts/shell.ts'

/** For who is not signed in, or not any more. */
export function SignedOut({ hasUnsaved }: { readonly hasUnsaved: boolean }): ReactElement {
  return (
    <main className="boot">
      <h1>Sandwire</h1>
      <p>{shellTexts.account.signedOut}</p>
      {hasUnsaved && <p>{shellTexts.account.keepUnsaved}</p>}
      {/* Leaving this page would lose what is not saved. */}
      <a className="button primary" href="/signin" target={hasUnsaved ? '_blank' : undefined} rel="noopener">
        {shellTexts.account.signIn}
      </a>
    </main>
  )
}
