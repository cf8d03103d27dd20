import { WAY_THERE_JS } from './way-there.ts'

/** The first page: who is signed in, what is theirs and what was shared with them, and the lines to attach with. */
export const FRONT_HTML = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sandwire</title>
<link rel="stylesheet" href="/page.css"><script src="/front.js" defer></script></head>
<body>
<header><h1>Sandwire</h1><span id="person" hidden>Signed in as <strong id="name"></strong></span>
<button id="signout" hidden>Sign out</button><a id="signin" class="button main" href="/signin" hidden>Sign in</a></header>
<main>
<p id="status" role="status">Loading…</p>
<table id="sandboxes" hidden><thead><tr><th scope="col">Sandbox</th><th scope="col">State</th><th scope="col">Attach</th></tr></thead><tbody></tbody></table>
<section id="others" hidden><h2>Shared with you</h2>
<table id="shared"><thead><tr><th scope="col">What</th><th scope="col">By</th><th scope="col">As</th><th scope="col">Until</th><th scope="col">Attach</th></tr></thead><tbody></tbody></table>
<p id="guest" hidden>You are a guest, in this browser only. To attach from a terminal, ask for another link and give it to <code>npx sbx-stdio join</code>.</p></section>
<p id="terminal">In a terminal: <code id="line"></code></p>
</main></body></html>
`

/** Texts go in as text, never as markup. */
export const FRONT_JS = `'use strict'
const at = (id) => document.getElementById(id)
const line = (name) => 'npx sbx-stdio ' + location.origin + ' --sandbox ' + name + ' --cmd bash'
const say = (text) => { at('status').textContent = text }
const away = () => say('The server does not answer.')
at('line').textContent = line('dev')
const cell = (row, tag, text) => {
  const inner = document.createElement(tag)
  inner.textContent = text
  row.insertCell().append(inner)
}
const show = ({ sandboxes: all }, isGuest) => {
  const sandboxes = all.filter(({ access }) => access === 'owner')
  say(sandboxes.length === 0 && !isGuest ? 'No sandboxes yet.' : '')
  for (const { name, state, ephemeral } of sandboxes) {
    const row = at('sandboxes').tBodies[0].insertRow()
    cell(row, 'span', name + (ephemeral ? ' (ephemeral)' : ''))
    cell(row, 'span', state)
    cell(row, 'code', line(name))
  }
  at('sandboxes').hidden = sandboxes.length === 0
}
${WAY_THERE_JS}// By ids: names are of one's own sandboxes. What a guest may do hangs on this browser's cookie, which no terminal has.
const showShared = ({ grants }, isGuest) => {
  for (const { sandbox, sandboxName, session, role, owner, expiresMs } of grants) {
    const row = at('shared').tBodies[0].insertRow()
    cell(row, 'span', session === null ? sandboxName : 'one session')
    cell(row, 'span', owner)
    cell(row, 'span', role)
    cell(row, 'span', new Date(expiresMs).toLocaleString())
    if (!isGuest) cell(row, 'code', wayThere({ sandbox, session, role }).line)
  }
  at('others').hidden = grants.length === 0
  at('guest').hidden = !isGuest
  at('terminal').hidden = isGuest
  if (isGuest) at('shared').tHead.rows[0].lastElementChild.remove()
}
const begin = async () => {
  const who = await fetch('/api/whoami')
  if (who.status === 401) {
    at('signin').hidden = false
    return say('Not signed in.')
  }
  if (!who.ok) return say('The server answered ' + who.status + '.')
  const { name, guest } = await who.json()
  at('name').textContent = name
  at('person').hidden = at('signout').hidden = false
  for (const [path, use] of [['/api/sandboxes', show], ['/api/account/grants', showShared]]) {
    const response = await fetch(path)
    if (!response.ok) return say('The server answered ' + response.status + '.')
    use(await response.json(), guest)
  }
}
at('signout').addEventListener('click', () => {
  fetch('/api/signout', { method: 'POST' }).then((response) => {
    // Refused as unknown is signed out as well.
    if (response.ok || response.status === 401) location.replace('/signin')
    else say('The server answered ' + response.status + '.')
  }, away)
})
begin().catch(away)
`
