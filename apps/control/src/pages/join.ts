import { frame, THEME_JS } from './frame.ts'
import { WAY_THERE_JS } from './way-there.ts'

/** Where a link to something shared leads. Its secret is in the fragment, which never leaves the browser by itself. */
export const JOIN_HTML = frame(
  'Join in Sandwire',
  `<h1>Join in Sandwire</h1>
<p id="status" role="status">Loading…</p>
<p id="signin" hidden><a class="button main" href="/signin?to=%2Fjoin">Sign in</a></p>
<form id="ask" class="stack" hidden><label id="naming">Your name, as the others see it
<input id="name" maxlength="56" autocomplete="nickname" spellcheck="false"></label><button>Join</button></form>
<p id="instead" hidden>A link works once, and joins this browser. For a terminal, give it to <code>npx sbx-stdio join</code> there instead.</p>
<div id="next" hidden><p><a id="open" class="button main" href="/">Open it</a></p><p id="terminal" hidden><span id="purpose"></span> <code id="line"></code></p><p><a href="/">All that is shared with you</a></p></div>`,
  '/join.js',
)

/**
 * Erases the secret from the address bar and the history before anything else. It waits in this tab's storage while its
 * person signs in, and until it has been used or is known to be worth nothing: whatever else goes wrong, one tries again.
 * What is to be opened then is left in the same place for the workbench, which takes it from there. Texts go in as text, never as markup.
 */
export const JOIN_JS = `'use strict'
${THEME_JS}const fragment = location.hash.slice(1)
history.replaceState(null, '', '/join')
// Another link in the same tab changes nothing but the fragment.
addEventListener('hashchange', () => { location.reload() })
const KEY = 'sandwire.join'
const at = (id) => document.getElementById(id)
const say = (text) => { at('status').textContent = text }
if (fragment !== '') sessionStorage.setItem(KEY, fragment)
const link = sessionStorage.getItem(KEY) ?? ''
// Somebody without a sign-in of their own, of whom no terminal knows.
let isGuest = false
${WAY_THERE_JS}const show = ({ sandbox, sandboxName, session, role, owner }) => {
  const what = session === null ? 'the sandbox ' + sandboxName : 'one session'
  say(owner + ' shares ' + what + ' with you, as ' + role + '.')
  const { line, leads } = wayThere({ sandbox, session, role })
  at('purpose').textContent = leads ? 'In a terminal:' : 'To see in a terminal what runs there:'
  if (!isGuest) at('line').textContent = line
  at('terminal').hidden = isGuest
  at('open').addEventListener('click', () => {
    sessionStorage.setItem('sandwire.open', JSON.stringify({ sandbox, session, role }))
  })
  at('next').hidden = false
}
const explain = async (response) => {
  if (response.status === 410) return 'The link was used, has expired or was withdrawn: ask for a new one.'
  const body = await response.json().catch(() => undefined)
  return body?.error?.message ?? 'The server answered ' + response.status + '.'
}
const offer = (isOffered) => { at('ask').hidden = at('instead').hidden = !isOffered }
const redeem = async (name) => {
  offer(false)
  const response = await fetch('/api/grants/redeem', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(name === '' ? { link } : { link, name }),
  })
  const isOver = response.ok || response.status === 410
  if (isOver) sessionStorage.removeItem(KEY)
  if (response.ok) return show(await response.json())
  say(await explain(response))
  offer(!isOver)
}
const fail = () => say('The server does not answer.')
const join = (name) => redeem(name).catch(() => {
  fail()
  offer(true)
})
at('ask').addEventListener('submit', (event) => {
  event.preventDefault()
  join(at('name').value.trim())
})
const begin = async () => {
  if (link === '') return say('This address is only the beginning of a link: open the whole one.')
  const who = await fetch('/api/whoami')
  if (who.ok) {
    isGuest = (await who.json()).guest
    at('naming').hidden = true
    return join('')
  }
  const { mode, local, issuers } = await (await fetch('/api/auth')).json()
  const hasGuests = mode === 'local' && local && issuers.length === 0
  say(hasGuests ? 'Something was shared with you.' : 'Sign in to see what was shared with you.')
  isGuest = hasGuests
  at('signin').hidden = hasGuests
  offer(hasGuests)
}
begin().catch(fail)
`
