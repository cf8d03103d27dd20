import { expect, test } from 'bun:test'
import { type ErrorCode, ERRORS } from '@sandwire/protocol'
import { COMMAND_NAMES } from '../commands/names.ts'
import { COMMANDS } from '../commands/run-command.ts'
import { type Action, hintFor, forbiddenHint, roleHint } from './hints.ts'

const CONTEXT = {
  action: 'list' as const,
  url: 'http://h',
  credential: 'given' as const,
  program: 'sbx-stdio',
  reattach: undefined,
}

test('hintFor has one line for every error', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) expect(hintFor(code, CONTEXT)).toMatch(/^[^\n]{5,}$/)
})

test('hintFor depends on what is known', () => {
  expect(hintFor('unauthorized', { ...CONTEXT, credential: 'none' })).toContain('sbx-stdio login http://h')
  expect(hintFor('unauthorized', CONTEXT)).toContain('not accepted')
  expect(hintFor('link_lost', CONTEXT)).toContain('http://h')
  expect(hintFor('frame_too_large', { ...CONTEXT, action: 'start something' })).toContain('-- bash -s < FILE')
  expect(hintFor('frame_too_large', CONTEXT)).not.toContain('FILE')
  for (const action of ['join a session', 'watch a session'] as const)
    expect(hintFor('bad_request', { ...CONTEXT, action, urlOption: ' --url http://h' })).toBe(
      'see which there are: sbx-stdio sessions --url http://h',
    )
  expect(hintFor('link_lost', { ...CONTEXT, isLocal: true })).toContain('npm start')
  expect(hintFor('link_lost', { ...CONTEXT, reattach: 'sbx-stdio http://h --session s' })).toBe(
    'sbx-stdio http://h --session s',
  )
})

test('hintFor gives a command that can be pasted', () => {
  const context = { ...CONTEXT, sandbox: 'dev', urlOption: ' --url http://h' }
  expect(hintFor('sandbox_stopped', context)).toBe('start it: sbx-stdio start dev --url http://h')
  expect(hintFor('needs_discard', { ...context, urlOption: '' })).toEndWith('sbx-stdio stop dev --discard')
  expect(hintFor('sandbox_not_found', CONTEXT)).toEndWith('sbx-stdio list')
  expect(hintFor('sandbox_failed', CONTEXT)).toEndWith('sbx-stdio logs NAME')
  const npx = { ...context, program: 'npx sbx-stdio' }
  expect(hintFor('sandbox_stopped', npx)).toBe('start it: npx sbx-stdio start dev --url http://h')
  expect(hintFor('bad_request', npx)).toBe('npx sbx-stdio --help')
  expect(hintFor('provider_unavailable', CONTEXT)).toContain('npm start')
})

const REFUSAL = { program: 'sbx-stdio', sandbox: undefined, urlOption: '' }
const hint = (action: Action): string =>
  forbiddenHint({ action, program: 'npx sbx-stdio', sandbox: 'dev', urlOption: ' --url http://h' })

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
  expect(forbiddenHint({ ...REFUSAL, action: 'start something' })).toContain('sbx-stdio sessions,')
  expect(hint('start a template')).not.toContain('template')
})

test('who joins is told that they can watch, unless they do', () => {
  expect(hint('join a session')).toContain('--role viewer')
  expect(hint('watch a session')).not.toContain('--role')
  expect(roleHint('watch a session')).toContain('leave out --role viewer')
  expect(roleHint('join a session')).not.toContain('--role')
})
