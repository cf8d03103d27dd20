import type { SignInRefusal } from '../auth/code-flow.ts'

const SENTENCES: Readonly<Record<SignInRefusal, string>> = {
  stale: 'This sign-in was not started in this browser, took too long or was completed before.',
  denied: 'The sign-in was cancelled or refused.',
  not_believed: 'The issuer gave an answer that cannot be accepted.',
  away: 'The issuer does not answer.',
  not_allowed: 'This account may not use this server.',
}

/** Says in one sentence why nobody was signed in, and how to try again. */
export function notSignedInPage(why: SignInRefusal): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not signed in to Sandwire</title>
<link rel="stylesheet" href="/page.css"></head>
<body><main class="narrow"><h1>Not signed in</h1><p role="alert">${SENTENCES[why]}</p><p><a class="button main" href="/signin">Try again</a></p></main></body></html>
`
}
