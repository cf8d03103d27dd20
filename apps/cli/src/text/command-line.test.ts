import { expect, test } from 'bun:test'
import { shellQuote } from '@sandwire/shell-quote'
import { reattachCommand, programName, formatHint, formatSeconds } from './command-line.ts'

test('reattachCommand is complete, and quoted for a shell', () => {
  const options = {
    typedUrl: 'http://h:1/attach?a=1&b=2',
    role: undefined,
    tokenFile: "it's here",
  }
  expect(reattachCommand('sbx-stdio', options, 's.1')).toBe(
    `sbx-stdio 'http://h:1/attach?a=1&b=2' --session s.1 --token-file 'it'\\''s here'`,
  )
  expect(
    reattachCommand('npx sbx-stdio', { ...options, tokenFile: undefined, role: 'viewer' }, 's'),
  ).toContain('--role viewer')
})

test('shellQuote is what sh reads back', async () => {
  for (const word of ['plain', 'a b', "'", '$HOME', '`x`', '', 'a\nb', '*'])
    expect(await new Response(Bun.spawn(['sh', '-c', `printf %s ${shellQuote(word)}`]).stdout).text()).toBe(
      word,
    )
})

test.each([
  [60, '60 s'],
  [600, '10 min'],
  [86_400, '24 h'],
  [100_000, '28 h'],
  [604_799, '7 days'],
])('formatSeconds formats %d as "%s"', (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text)
})

test('programName depends on how the program was started', () => {
  const compiled = '/$bunfs/root/sbx-stdio'
  expect(programName({ npm_command: 'exec' }, compiled)).toBe('npx sbx-stdio')
  expect(programName({ npm_command: 'run-script' }, compiled)).toBe('sbx-stdio')
  expect(programName({}, '/somewhere/apps/cli/src/main.ts')).toBe('npx sbx-stdio')
})

test('formatHint replaces the program name in commands only', () => {
  expect(formatHint('sbx-stdio list', 'npx sbx-stdio')).toBe('npx sbx-stdio list')
  expect(formatHint('sbx-stdio list', 'sbx-stdio')).toBe('sbx-stdio list')
  expect(formatHint('list them: sbx-stdio list', 'npx sbx-stdio')).toBe('list them: npx sbx-stdio list')
  expect(formatHint('use the same version of sbx-stdio and', 'npx sbx-stdio')).toBe(
    'use the same version of sbx-stdio and',
  )
  expect(formatHint('choose one with --url URL', 'npx sbx-stdio')).toBe('choose one with --url URL')
})
