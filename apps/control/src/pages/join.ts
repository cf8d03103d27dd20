import { frame, PAGE_JS } from './frame.ts'
import { COMMON_TEXTS, JOIN_TEXTS } from './texts.ts'

const TEXTS = { ...COMMON_TEXTS, ...JOIN_TEXTS }

/** The page that share links open. The secret is in the fragment, which browsers do not send. */
export const JOIN_HTML = frame(
  TEXTS.title,
  `<h1>${TEXTS.title}</h1>
<p id="status" role="status">${TEXTS.loading}</p>
<p id="signin" hidden><a class="button main" href="/signin?to=%2Fjoin">${TEXTS.signIn}</a></p>
<form id="ask" class="stack" hidden><label id="naming">${TEXTS.nameLabel}
<input id="name" maxlength="56" autocomplete="nickname" spellcheck="false"></label><button>${TEXTS.join}</button></form>
<p id="instead" hidden>${TEXTS.oneUse.join('<code>npx sbx-stdio join</code>')}</p>
<div id="next" hidden><p><a id="open" class="button main" href="/">${TEXTS.open}</a></p><p id="terminal" hidden><span id="purpose"></span> <code id="line"></code></p><p><a href="/">${TEXTS.all}</a></p></div>`,
  '/join.js',
)

/**
 * Joins only on a click: any site can open this page, and joining shows the user's name to the owner of the link.
 *
 * Removes the secret from the address bar and the history first. Keeps it in the tab's storage until the link is redeemed or
 * known to be invalid, so that signing in or a failed request does not lose it. Leaves the grant in the same storage for the
 * workbench to open.
 */
export const JOIN_JS = `'use strict'
const texts = ${JSON.stringify(TEXTS)}
${PAGE_JS}const fragment = location.hash.slice(1)
history.replaceState(null, '', '/join')
// Opening another link in the same tab changes only the fragment.
addEventListener('hashchange', () => { location.reload() })
const KEY = 'sandwire.join'
if (fragment !== '') sessionStorage.setItem(KEY, fragment)
const link = sessionStorage.getItem(KEY) ?? ''
// A guest has no credential that a terminal could use.
let isGuest = false
// The same command as the CLI prints. A viewer cannot start a session, so a shared sandbox only lists its sessions.
const commandFor = ({ sandbox, session, role }) => {
  const url = location.origin
  const isViewer = role === 'viewer'
  const args = session !== null
    ? url + ' --session ' + session + (isViewer ? ' --role viewer' : '')
    : isViewer ? 'sessions ' + sandbox + ' --url ' + url : url + ' --sandbox ' + sandbox + ' --no-create'
  return { line: 'npx sbx-stdio ' + args, attaches: session !== null || !isViewer }
}
const showGrant = ({ sandbox, sandboxName, session, role, owner }) => {
  const isConversation = session !== null && session.includes('__')
  const thing = isConversation ? texts.conversation : texts.session
  const target = session === null ? fill(texts.sandbox, { name: sandboxName }) : thing
  show(fill(texts.invited, { owner, target, role }))
  const { line, attaches } = commandFor({ sandbox, session, role })
  byId('purpose').textContent = attaches ? texts.openInTerminal : texts.listInTerminal
  if (!isGuest) byId('line').textContent = line
  byId('terminal').hidden = isGuest || isConversation
  byId('open').addEventListener('click', () => {
    sessionStorage.setItem('sandwire.open', JSON.stringify({ sandbox, session, role }))
  })
  byId('next').hidden = false
}
const problemOf = async (response) => {
  if (response.status === 410) return texts.linkInvalid
  const body = await response.json().catch(() => undefined)
  return body?.error?.message ?? fill(texts.failed, { status: response.status })
}
const offer = (isOffered) => { byId('ask').hidden = byId('instead').hidden = !isOffered }
const redeem = async (name) => {
  offer(false)
  const response = await fetch('/api/grants/redeem', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(name === '' ? { link } : { link, name }),
  })
  const isFinal = response.ok || response.status === 410
  if (isFinal) sessionStorage.removeItem(KEY)
  if (response.ok) return showGrant(await response.json())
  show(await problemOf(response))
  offer(!isFinal)
}
const fail = () => show(texts.unreachable)
const join = (name) => redeem(name).catch(() => {
  fail()
  offer(true)
})
byId('ask').addEventListener('submit', (event) => {
  event.preventDefault()
  join(byId('name').value.trim())
})
const begin = async () => {
  if (link === '') return show(texts.incomplete)
  const whoami = await fetch('/api/whoami')
  if (whoami.ok) {
    const { name, guest } = await whoami.json()
    isGuest = guest
    byId('naming').hidden = true
    show(fill(texts.confirm, { name }))
    return offer(true)
  }
  const { mode, local, issuers } = await (await fetch('/api/auth')).json()
  isGuest = mode === 'local' && local && issuers.length === 0
  show(isGuest ? texts.guest : texts.signInFirst)
  byId('signin').hidden = isGuest
  offer(isGuest)
}
begin().catch(fail)
`
