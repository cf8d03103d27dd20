import { expect, test } from 'bun:test'
import { wrapHelp, HELP, expandHelpCommand } from './help.ts'

const TEXT = `Usage: sbx-stdio share SANDBOX [--session ID] [--role ROLE] [--expires TIME] [--json]
       sbx-stdio share --help

Prints a link that gives another person access. It works
once.

  --session ID     share one session and nothing else; a sandbox need
                   not be given
  --json
`

test('wrapHelp changes nothing that fits, or that does not go to a terminal', () => {
  expect(wrapHelp(TEXT, undefined)).toBe(TEXT)
  expect(wrapHelp(TEXT, 90)).toBe(TEXT)
})

test('wrapHelp breaks between words and indents the next line like the text', () => {
  expect(wrapHelp(TEXT, 60)).toBe(`Usage: sbx-stdio share SANDBOX [--session ID] [--role ROLE]
       [--expires TIME] [--json]
       sbx-stdio share --help

Prints a link that gives another person access. It works
once.

  --session ID     share one session and nothing else; a
                   sandbox need not be given
  --json
`)
})

test('wrapHelp fits the help into 80 columns without losing a word', () => {
  const fitted = wrapHelp(HELP, 80)
  expect(fitted.split('\n').filter((line) => line.length > 80)).toEqual([])
  expect(fitted.split(/\s+/)).toEqual(HELP.split(/\s+/))
})

test.each([
  [['help'], ['--help']],
  [
    ['help', 'cp'],
    ['cp', '--help'],
  ],
  [['help', 'nothing'], ['--help']],
  [
    ['cp', 'help', 'box:'],
    ['cp', 'help', 'box:'],
  ],
  [[], []],
])('%j becomes %j', (argv, read) => expect(expandHelpCommand(argv)).toEqual(read))
