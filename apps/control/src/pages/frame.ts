/** The workbench's icon; inline, because the content security policy allows no images. */
const LOGO = `<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#14161b"/><path d="M7 11l5 5-5 5" fill="none" stroke="#e8b04b" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/><path d="M15 22h10" stroke="#7ab3f5" stroke-width="3" stroke-linecap="round"/></svg>`

/** A page with the common head and logo. `body` is markup. */
export function frame(title: string, body: string, script?: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<link rel="stylesheet" href="/page.css">${script === undefined ? '' : `<script src="${script}" defer></script>`}</head>
<body><main><p class="brand">${LOGO} Sandwire</p>
${body}
</main></body></html>
`
}

/** Applies the theme chosen in the workbench; default: the system's. */
const THEME_JS = `try {
  const { theme } = JSON.parse(localStorage.getItem('sandwire.settings') ?? '{}')
  if (['light', 'dark'].includes(theme)) document.documentElement.dataset.theme = theme
} catch {
  // No settings are stored, or they are unreadable.
}
`

/** Script helpers: `byId`, `show` for the status line, and `fill` for texts with placeholders. */
export const PAGE_JS = `${THEME_JS}const byId = (id) => document.getElementById(id)
const show = (text) => { byId('status').textContent = text }
const fill = (text, values) => text.replace(/\\{(\\w+)\\}/g, (_, name) => values[name])
`

const LIGHT =
  'color-scheme:light;--bg:#fbfbfa;--raised:#fff;--hover:#e9e9e6;--line:#d9d9d5;--edge:#868b91;--text:#24292f;--dim:#57606a;--accent:#8a5100;--on-accent:#fff;--focus:#0b57c2'
const DARK =
  'color-scheme:dark;--bg:#14161b;--raised:#22262e;--hover:#2a2f39;--line:#2d323c;--edge:#6b7482;--text:#e3e6ec;--dim:#a0a8b6;--accent:#e8b04b;--on-accent:#1b1405;--focus:#7ab3f5'

/** Style of every page, with the colors and fonts of the workbench. */
export const PAGE_CSS = `:root{${LIGHT}}
@media (prefers-color-scheme:dark){:root:not([data-theme=light]){${DARK}}}
:root[data-theme=dark]{${DARK}}
*{box-sizing:border-box}
body{margin:0;padding:12vh 1rem 2rem;background:var(--bg);color:var(--text);font:15px/1.5 Inter,system-ui,-apple-system,'Segoe UI',sans-serif}
[hidden]{display:none!important}
main{max-width:26rem;margin:0 auto;padding:1.5rem;border:1px solid var(--line);border-radius:10px;background:var(--raised)}
.brand{display:flex;align-items:center;gap:.5rem;margin:0 0 1.2rem;color:var(--dim);font-weight:600}.brand svg{width:1.6rem;height:1.6rem}
h1{font-size:1.3rem;margin:0 0 .8rem}h2{font-size:1rem;margin:1.5rem 0 .4rem}
p{margin:.6rem 0}a{color:var(--focus)}
code{padding:.1rem .3rem;border-radius:4px;background:var(--bg);font:.9em 'JetBrains Mono','Cascadia Code','DejaVu Sans Mono',Menlo,Consolas,monospace;overflow-wrap:anywhere}
.button,button{display:inline-block;padding:.45rem 1rem;border:1px solid var(--edge);border-radius:6px;background:var(--raised);color:inherit;font:inherit;text-decoration:none;cursor:pointer}
.button:hover,button:hover{background:var(--hover)}
.main,form button{border-color:var(--accent);background:var(--accent);color:var(--on-accent);font-weight:600}
.main:hover,form button:hover{background:var(--accent);filter:brightness(1.08)}
input{padding:.45rem .6rem;border:1px solid var(--edge);border-radius:6px;background:var(--bg);color:inherit;font:inherit;min-width:0}
:focus-visible{outline:2px solid var(--focus);outline-offset:2px}
.stack{display:flex;flex-direction:column;gap:.6rem}.stack .button,.stack button{text-align:center;width:100%}.stack label{display:flex;flex-direction:column;gap:.2rem}
`
