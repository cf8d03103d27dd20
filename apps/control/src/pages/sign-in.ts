/** Where the printed link leads. The code is in the fragment, which never leaves the browser by itself. */
export const SIGN_IN_HTML = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign in to Sandwire</title>
<link rel="stylesheet" href="/page.css"><script src="/signin.js" defer></script></head>
<body><main><h1>Sandwire</h1><p id="status" role="status">Signing in…</p></main></body></html>
`

/** Erases the code from the address bar and the history before it is used. */
export const SIGN_IN_JS = `'use strict'
const status = document.getElementById('status')
const code = location.hash.slice(1)
history.replaceState(null, '', '/signin')
const signIn = async () => {
  if (code === '') return 'This link has no code: npx sandwire signin prints one.'
  const response = await fetch('/api/signin', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  })
  if (!response.ok) return 'The link was used or has expired: npx sandwire signin prints a new one.'
  location.replace('/')
  return 'Signed in.'
}
signIn().catch(() => 'The server does not answer.').then((text) => { status.textContent = text })
`
