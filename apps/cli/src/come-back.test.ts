import { expect, test } from 'bun:test'
import { comeBackLine, programName, quote, spellSeconds } from './come-back.ts'

test('comeBackLine names everything that is needed, quoted for a shell', () => {
  const options = {
    typedUrl: 'http://h:1/attach?a=1&b=2',
    role: undefined,
    tokenFile: "it's here",
  }
  expect(comeBackLine('sbx-stdio', options, 's.1')).toBe(
    `sbx-stdio 'http://h:1/attach?a=1&b=2' --session s.1 --token-file 'it'\\''s here'`,
  )
  expect(comeBackLine('npx sbx-stdio', { ...options, tokenFile: undefined, role: 'viewer' }, 's')).toContain(
    '--role viewer',
  )
})

test('quote is what sh reads back', async () => {
  for (const word of ['plain', 'a b', "'", '$HOME', '`x`', '', 'a\nb', '*'])
    expect(await new Response(Bun.spawn(['sh', '-c', `printf %s ${quote(word)}`]).stdout).text()).toBe(word)
})

test.each([
  [60, '60 s'],
  [600, '10 min'],
  [86_400, '24 h'],
])('spellSeconds says %d as "%s"', (seconds, text) => {
  expect(spellSeconds(seconds)).toBe(text)
})

test('programName is what the user typed', () => {
  expect(programName({ npm_command: 'exec' })).toBe('npx sbx-stdio')
  expect(programName({ npm_command: 'run-script' })).toBe('sbx-stdio')
})
