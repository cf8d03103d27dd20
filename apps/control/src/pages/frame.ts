/** The same as the workbench's icon. Drawn in the page, as its policy lets no picture in. */
const LOGO = `<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#14161b"/><path d="M7 11l5 5-5 5" fill="none" stroke="#e8b04b" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/><path d="M15 22h10" stroke="#7ab3f5" stroke-width="3" stroke-linecap="round"/></svg>`

/** A small page around the workbench: its head, the word of the product, and what it is about. */
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

/** Takes the colors that a person chose for the workbench in this browser; without any, those of the system stay. */
export const THEME_JS = `try {
  const { theme } = JSON.parse(localStorage.getItem('sandwire.settings') ?? '{}')
  if (['light', 'dark'].includes(theme)) document.documentElement.dataset.theme = theme
} catch {
  // Nothing that is ours is kept there.
}
`
