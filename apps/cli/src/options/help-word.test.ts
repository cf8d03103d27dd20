import { expect, test } from 'bun:test'
import { spellHelp } from './help-word.ts'

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
])('%j is read as %j', (argv, read) => expect(spellHelp(argv)).toEqual(read))
