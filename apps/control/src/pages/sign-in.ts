import type { SignInProblem } from '../auth/code-flow.ts'
import { frame, PAGE_JS } from './frame.ts'
import { COMMON_TEXTS, SIGN_IN_FAILED_TEXTS, SIGN_IN_TEXTS } from './texts.ts'

const TEXTS = { ...COMMON_TEXTS, ...SIGN_IN_TEXTS }

/** The page that printed sign-in links open. The code is in the fragment, which browsers do not send. */
export const SIGN_IN_HTML = frame(
  TEXTS.title,
  `<h1>${TEXTS.title}</h1>
<p id="status" role="status">${TEXTS.loading}</p>
<div id="issuers" class="stack" hidden></div>
<section id="local" hidden><h2>${TEXTS.localHeading}</h2>
<p><code>npx sandwire signin</code> ${TEXTS.localHint}</p>
<form id="form" class="stack"><label>${TEXTS.codeLabel} <input id="code" autocomplete="off" spellcheck="false" required></label>
<button>${TEXTS.signIn}</button></form></section>`,
  '/signin.js',
)

/** Removes the code from the address bar and the history before using it. */
export const SIGN_IN_JS = `'use strict'
const texts = ${JSON.stringify(TEXTS)}
${PAGE_JS}const fail = () => show(texts.unreachable)
const fragment = location.hash.slice(1)
const to = new URLSearchParams(location.search).get('to')
// The same rule as the server's: a path on this server.
const isOurs = /^\\/(?![\\/\\\\])/.test(to ?? '') && new URL(to, location.origin).origin === location.origin
history.replaceState(null, '', '/signin' + location.search)
// Opening another link in the same tab changes only the fragment.
addEventListener('hashchange', () => { location.reload() })
const redeem = async (code) => {
  show(texts.signingIn)
  const response = await fetch('/api/signin', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  })
  if (!response.ok) return offer(response.status === 403 ? texts.otherName : texts.linkInvalid)
  show(texts.signedIn)
  location.replace(isOurs ? new URL(to, location.origin).href : '/')
}
// A link for this server's private .localhost name must be opened there: all ports of this name share its cookies.
const privateLink = (text) => {
  const link = URL.canParse(text) ? new URL(text) : undefined
  if (link === undefined || link.host === location.host || !link.hostname.endsWith('.localhost')) return undefined
  if (link.protocol !== location.protocol || link.port !== location.port || link.pathname !== '/signin') return undefined
  link.search = location.search
  return link.href
}
const issuerButton = ({ id, name }) => {
  const link = document.createElement('a')
  const query = new URLSearchParams(to === null ? { issuer: id } : { issuer: id, to })
  link.href = '/signin/start?' + query
  link.className = 'button main'
  link.textContent = fill(texts.issuerButton, { name })
  return link
}
const offer = async (text) => {
  const { local, issuers } = await (await fetch('/api/auth')).json()
  const usable = issuers.filter(({ clientId }) => clientId !== null)
  byId('issuers').replaceChildren(...usable.map(issuerButton))
  byId('issuers').hidden = usable.length === 0
  byId('local').hidden = !local
  show(text === '' && usable.length === 0 && !local ? texts.unavailable : text)
}
byId('form').addEventListener('submit', (event) => {
  event.preventDefault()
  const typed = byId('code').value.trim()
  byId('code').value = ''
  const link = privateLink(typed)
  if (link === undefined) redeem(typed.split('#').at(-1)).catch(fail)
  else location.assign(link)
})
;(fragment === '' ? offer('') : redeem(fragment)).catch(fail)
`

/** The page after a failed sign-in at an issuer. */
export function signInFailedPage(problem: SignInProblem): string {
  const { title, retry, problems } = SIGN_IN_FAILED_TEXTS
  return frame(
    title,
    `<h1>${title}</h1><p role="alert">${problems[problem]}</p><p><a class="button main" href="/signin">${retry}</a></p>`,
  )
}
