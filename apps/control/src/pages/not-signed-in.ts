import type { SignInRefusal } from '../auth/code-flow.ts'
import { frame } from './frame.ts'

const SENTENCES: Readonly<Record<SignInRefusal, string>> = {
  stale: 'This sign-in was not started in this browser, took too long or was completed before.',
  denied: 'The sign-in was canceled or refused.',
  not_believed: 'The issuer gave an answer that cannot be accepted.',
  away: 'The issuer does not answer.',
  not_allowed: 'This account may not use this server.',
}

/** Says in one sentence why nobody was signed in, and how to try again. */
export function notSignedInPage(why: SignInRefusal): string {
  return frame(
    'Not signed in to Sandwire',
    `<h1>Not signed in</h1><p role="alert">${SENTENCES[why]}</p><p><a class="button main" href="/signin">Try again</a></p>`,
  )
}
