import { expect, test } from 'bun:test'
import { HELP } from '../options/help.ts'
import { COMMAND_NAMES } from './names.ts'
import { COMMANDS } from './run-command.ts'

/** Widest line of a help text. */
const MAX_COLUMNS = 122

test.each([...COMMAND_NAMES])(
  'the help of %s describes each of its options once, in lines of limited width',
  (name) => {
    const { help, options } = COMMANDS[name]
    expect(help.split('\n').filter((line) => line.length > MAX_COLUMNS)).toEqual([])
    expect(help).toStartWith(`Usage: sbx-stdio ${name}`)
    expect(HELP).toMatch(new RegExp(`^ +(?:[a-z]+, )*${name}\\b`, 'm'))
    const described = Array.from(help.matchAll(/^  (?:-[a-z], )?--([a-z-]+)/gm), ([, option = '']) => option)
    const hidden = name === 'cp' ? ['recursive'] : []
    expect(described.toSorted()).toEqual(
      Object.keys(options)
        .filter((own) => !hidden.includes(own))
        .toSorted(),
    )
  },
)
