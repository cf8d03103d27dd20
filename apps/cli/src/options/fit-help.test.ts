import { expect, test } from 'bun:test'
import { fitHelp } from './fit-help.ts'
import { HELP } from './help.ts'

const TEXT = `Usage: sbx-stdio share SANDBOX [--session ID] [--role ROLE] [--expires TIME] [--json]
       sbx-stdio share --help

Prints a link that gives somebody else access. It works
once.

  --session ID     share one session and nothing else; a sandbox need
                   not be given
  --json
`

test('fitHelp leaves what fits, and what is not for a terminal, as it is', () => {
  expect(fitHelp(TEXT, undefined)).toBe(TEXT)
  expect(fitHelp(TEXT, 90)).toBe(TEXT)
})

test('fitHelp breaks between words, below where the text begins', () => {
  expect(fitHelp(TEXT, 60)).toBe(`Usage: sbx-stdio share SANDBOX [--session ID] [--role ROLE]
       [--expires TIME] [--json]
       sbx-stdio share --help

Prints a link that gives somebody else access. It works
once.

  --session ID     share one session and nothing else; a
                   sandbox need not be given
  --json
`)
})

test('fitHelp makes the help fit an ordinary terminal without losing a word', () => {
  const fitted = fitHelp(HELP, 80)
  expect(fitted.split('\n').filter((line) => line.length > 80)).toEqual([])
  expect(fitted.split(/\s+/)).toEqual(HELP.split(/\s+/))
})
