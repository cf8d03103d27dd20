import { expect, test } from 'bun:test'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { Markdown } from './markdown.tsx'

const draw = (text: string): string => renderToStaticMarkup(createElement(Markdown, { text }))

test('draws what models write', () => {
  expect(draw('# Title\n\nSome **bold** `code < 1` &amp; more\n\n3. three\n4. four')).toBe(
    '<div class="model-text"><h3>Title</h3><p>Some <strong>bold</strong> <code>code &lt; 1</code> &amp; more</p>' +
      '<ol start="3"><li>three</li><li>four</li></ol></div>',
  )
  expect(draw('```ts\na < b\n```')).toContain('<pre tabindex="0">a &lt; b</pre>')
  expect(draw('| a | b |\n|---|---|\n| 1 | 2 |')).toContain('<td>1</td>')
})

test.each([
  '<img src=x onerror=alert(1)>',
  '<script>alert(1)</script>',
  'a <b onclick="x">b</b>',
  '<svg><a xlink:href="javascript:alert(1)">x</a></svg>',
  '<iframe srcdoc="x"></iframe>',
])('HTML is text: %s', (text) => {
  expect(draw(text)).not.toMatch(/<(img|script|b|svg|a|iframe)\b/)
  expect(draw(text)).toContain('&lt;')
})

test('links are buttons that ask, other schemes are text, and images are never loaded', () => {
  expect(draw('[x](https://example.com/a)')).toContain('<button type="button" class="model-link"')
  for (const href of ['javascript:alert(1)', 'data:text/html,x', 'blob:x', 'file:///etc/passwd'])
    expect(draw(`[x](${href})`)).not.toMatch(/<a|<button|href=/)
  const image = draw('![secret](https://example.com/beacon.png)')
  expect(image).not.toContain('<img')
  expect(image).toContain('Image: secret')
})

test('deep nesting and long texts do not stop the page', () => {
  expect(draw(`${'> '.repeat(200)}deep`)).toContain('deep')
  expect(draw('*a '.repeat(30_000))).toStartWith('<pre')
})
