import { frame, THEME_JS } from './frame.ts'

/** Where printed links lead, and everybody who is not signed in. A code is in the fragment, which never leaves the browser by itself. */
export const SIGN_IN_HTML = frame(
  'Sign in to Sandwire',
  `<h1>Sign in to Sandwire</h1>
<p id="status" role="status">Loading…</p>
<div id="issuers" class="stack" hidden></div>
<section id="local" hidden><h2>On this machine</h2>
<p><code>npx sandwire signin</code> prints a link. Open it, or paste it here:</p>
<form id="form" class="stack"><label>Link or code <input id="code" autocomplete="off" spellcheck="false" required></label>
<button>Sign in</button></form></section>`,
  '/signin.js',
)

/** Erases the code from the address bar and the history before it is used. Texts go in as text, never as markup. */
export const SIGN_IN_JS = `'use strict'
${THEME_JS}const at = (id) => document.getElementById(id)
const say = (text) => { at('status').textContent = text }
const away = () => say('The server does not answer.')
const linked = location.hash.slice(1)
const to = new URLSearchParams(location.search).get('to')
// As the server has it for issuers: a path, and on this server.
const isOurs = /^\\/(?![\\/\\\\])/.test(to ?? '') && new URL(to, location.origin).origin === location.origin
history.replaceState(null, '', '/signin' + location.search)
// Another link in the same tab changes nothing but the fragment.
addEventListener('hashchange', () => { location.reload() })
const redeem = async (code) => {
  say('Signing in…')
  const response = await fetch('/api/signin', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  })
  if (!response.ok) return offer('The link was used or has expired: npx sandwire signin prints a new one.')
  say('Signed in.')
  location.replace(isOurs ? new URL(to, location.origin).href : '/')
}
// A link to this server under a name of loopback that only its user knows is for that name: other ports of this one get its cookies.
const ownName = (text) => {
  const link = URL.canParse(text) ? new URL(text) : undefined
  if (link === undefined || link.host === location.host || !link.hostname.endsWith('.localhost')) return undefined
  if (link.protocol !== location.protocol || link.port !== location.port || link.pathname !== '/signin') return undefined
  link.search = location.search
  return link.href
}
const button = ({ id, name }) => {
  const link = document.createElement('a')
  const query = new URLSearchParams(to === null ? { issuer: id } : { issuer: id, to })
  link.href = '/signin/start?' + query
  link.className = 'button main'
  link.textContent = 'Continue with ' + name
  return link
}
const offer = async (text) => {
  const { local, issuers } = await (await fetch('/api/auth')).json()
  const usable = issuers.filter(({ clientId }) => clientId !== null)
  at('issuers').replaceChildren(...usable.map(button))
  at('issuers').hidden = usable.length === 0
  at('local').hidden = !local
  say(text === '' && usable.length === 0 && !local ? 'This server has no sign-in in a browser.' : text)
}
at('form').addEventListener('submit', (event) => {
  event.preventDefault()
  const typed = at('code').value.trim()
  at('code').value = ''
  const link = ownName(typed)
  if (link === undefined) redeem(typed.split('#').at(-1)).catch(away)
  else location.assign(link)
})
;(linked === '' ? offer('') : redeem(linked)).catch(away)
`
