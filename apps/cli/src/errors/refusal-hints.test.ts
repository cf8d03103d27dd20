import { expect, test } from 'bun:test'
import { COMMANDS } from '../commands/registry.ts'
import { COMMAND_NAMES } from '../commands/names.ts'
import { type Doing, hintForRefusal, hintForRole } from './refusal-hints.ts'

const CONTEXT = { program: 'sbx-stdio', sandbox: undefined, urlOption: '' }
const hint = (doing: Doing): string =>
  hintForRefusal({ doing, program: 'npx sbx-stdio', sandbox: 'dev', urlOption: ' --url http://h' })

test('no command is told of an option that it does not have', () => {
  for (const name of COMMAND_NAMES) {
    const options = [...hint(name).matchAll(/--(?!url\b)([a-z-]+)/g)].map(([, option = '']) => option)
    for (const option of options) expect(COMMANDS[name].options).toHaveProperty(option)
  }
})

test('no command is told to try itself', () => {
  for (const name of COMMAND_NAMES) expect(hint(name)).not.toMatch(new RegExp(`sbx-stdio ${name}\\b`))
})

test('who may not start something is told of templates and of what runs', () => {
  expect(hint('start something')).toContain('npx sbx-stdio templates --url http://h')
  expect(hint('start something')).toContain('npx sbx-stdio sessions dev --url http://h')
  expect(hint('start something')).toContain('--template')
  expect(hintForRefusal({ ...CONTEXT, doing: 'start something' })).toContain('sbx-stdio sessions,')
  expect(hint('start a template')).not.toContain('template')
})

test('who joins is told that they can watch, unless they do', () => {
  expect(hint('join a session')).toContain('--role viewer')
  expect(hint('watch a session')).not.toContain('--role')
  expect(hintForRole('watch a session')).toContain('leave out --role viewer')
  expect(hintForRole('join a session')).not.toContain('--role')
})
