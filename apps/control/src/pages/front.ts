/** The first page: what runs, and the line to attach with. */
export const FRONT_HTML = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sandwire</title>
<link rel="stylesheet" href="/page.css"><script src="/front.js" defer></script></head>
<body><main>
<h1>Sandwire</h1>
<p id="status" role="status">Loading…</p>
<table id="sandboxes" hidden><thead><tr><th>Sandbox</th><th>State</th><th>Attach</th></tr></thead><tbody></tbody></table>
<p>In a terminal: <code id="line"></code></p>
</main></body></html>
`

/** Texts go in as text, never as markup. */
export const FRONT_JS = `'use strict'
const line = (name) => 'npx sbx-stdio ' + location.origin + ' --sandbox ' + name + ' --cmd bash'
const status = document.getElementById('status')
const table = document.getElementById('sandboxes')
document.getElementById('line').textContent = line('dev')
const cell = (row, tag, text) => {
  const inner = document.createElement(tag)
  inner.textContent = text
  row.insertCell().append(inner)
}
const show = ({ sandboxes }) => {
  status.textContent = sandboxes.length === 0 ? 'No sandboxes yet.' : ''
  for (const { name, state, ephemeral } of sandboxes) {
    const row = table.tBodies[0].insertRow()
    cell(row, 'span', name + (ephemeral ? ' (ephemeral)' : ''))
    cell(row, 'span', state)
    cell(row, 'code', line(name))
  }
  table.hidden = sandboxes.length === 0
}
fetch('/api/sandboxes').then(async (response) => {
  if (response.ok) show(await response.json())
  else if (response.status === 401) status.textContent = 'Not signed in: npx sandwire signin prints a link.'
  else status.textContent = 'The server answered ' + response.status + '.'
}).catch(() => { status.textContent = 'The server does not answer.' })
`

export const PAGE_CSS = `body{font:16px/1.5 system-ui,sans-serif;margin:3rem auto;max-width:60rem;padding:0 1rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4rem .8rem .4rem 0}code{background:#8881;padding:.1rem .3rem;white-space:nowrap}
`
