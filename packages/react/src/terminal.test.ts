import { expect, test } from 'bun:test'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { Terminal } from './terminal.tsx'

test('has the same elements whether it says what is wrong or not, so that its terminal stays where it is', () => {
  const draw = (showsTrouble: boolean) =>
    renderToStaticMarkup(
      createElement(Terminal, { url: 'https://sandwire.example', className: 'shell', showsTrouble }),
    )
  expect(draw(false)).toBe(draw(true))
  expect(draw(true)).toMatch(/^<div class="shell"[^>]*><div[^>]*><\/div><\/div>$/)
})
