/** The first page: who is signed in, what runs, and the line to attach with. */
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
<p>In a terminal: <code id="line"></code></p>
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
const show = ({ sandboxes }) => {
  say(sandboxes.length === 0 ? 'No sandboxes yet.' : '')
  for (const { name, state, ephemeral } of sandboxes) {
    const row = at('sandboxes').tBodies[0].insertRow()
    cell(row, 'span', name + (ephemeral ? ' (ephemeral)' : ''))
    cell(row, 'span', state)
    cell(row, 'code', line(name))
  }
  at('sandboxes').hidden = sandboxes.length === 0
}
const begin = async () => {
  const who = await fetch('/api/whoami')
  if (who.status === 401) {
    at('signin').hidden = false
    return say('Not signed in.')
  }
  if (!who.ok) return say('The server answered ' + who.status + '.')
  at('name').textContent = (await who.json()).name
  at('person').hidden = at('signout').hidden = false
  const response = await fetch('/api/sandboxes')
  if (response.ok) show(await response.json())
  else say('The server answered ' + response.status + '.')
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
